"""This machine: what it has, the programs that a test starts, their ports, and waiting for them."""
