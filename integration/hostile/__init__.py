"""The hostile suite: clients, origins and resolvers that break the rules, against a running edge and a running pair.

`make test` runs the short cases, `make test-long` all of them. Both print one table: cases, held, broken.
"""
