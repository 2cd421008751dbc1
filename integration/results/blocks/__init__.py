"""The blocks that `integration/results/readme` writes into pages, each a function from results to Markdown."""
