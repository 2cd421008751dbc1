"""Servers that respond, right or wrong, and the sites that they serve."""
