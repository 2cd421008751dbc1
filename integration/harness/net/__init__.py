"""Namespaces, the links between them, and what crosses them."""
