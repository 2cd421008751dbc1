"""Pictures for tests, and how alike two pictures are."""
