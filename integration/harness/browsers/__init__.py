"""A real browser, and what it shows while a page loads."""
