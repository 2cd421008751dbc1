"""Programs that ask, and what they got."""
