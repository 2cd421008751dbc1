"""Real client programs, whose results with Longhaul must be those without it."""
