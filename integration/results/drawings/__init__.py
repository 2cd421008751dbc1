"""The pictures of the guide, each from the files that say what it shows."""
