"""The facts that a bed needs about a page: its URL, and the files that its origins serve."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from harness.origins.program import Site


class ServedPage(Protocol):
    """A page on its own hosts."""

    @property
    def name(self) -> str:
        """The name in tables and in the names of files."""

    def url(self, scheme: str) -> str:
        """The URL of the page, for one scheme."""

    def add_to(self, site: Site, folder: Path, addresses: Iterator[str]) -> None:
        """Gives its hosts a place in the site, and writes its files below `folder`."""
