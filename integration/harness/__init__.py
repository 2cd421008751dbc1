"""The test bed: network namespaces, a link, origins, a real browser, and the real Longhaul between them.

Everything that is started here is stopped by the same object that started it: each part is a context manager, and a
test only ever stacks them. What outlives a killed test run is swept at the next one (namespaces.sweep).
Only the modules that say so need third-party packages, so that `make run` works with Python alone.
"""
