"""Figures of `make bench ONLY=field`: what stands between programs and the network that they know."""
