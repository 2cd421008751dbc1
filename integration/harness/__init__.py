"""The test bed: network namespaces, a link, origins, a real browser, and the real Longhaul between them.

Every part is a context manager, and stops all that it started. Tests only stack the parts. The next run removes what a
killed run left behind (`namespaces.sweep`). Only the modules that say so need third-party packages, so that `make run`
works with Python alone.
"""
