"""A plot in the page."""


def figure(svg: str, caption: str) -> str:
    """A plot with words under it."""
    return f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"
