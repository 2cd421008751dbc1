"""Longhaul itself: an edge, a pair, several grounds, and the beds around them."""
