"""The blocks that `tools/readme` writes into pages, each a function from results to Markdown."""
