"""HTML from templates, which escape every value that is not markup already."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template


def template(path: Path) -> Template:
    """A template, whatever its name ends in. A value that it lacks is an error."""
    environment = Environment(
        loader=FileSystemLoader(path.parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    return environment.get_template(path.name)
