"""What a bed needs of a page: where it is, and what its origins serve."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from harness.origins import Site


class ServedPage(Protocol):
    """A page on hosts of its own."""

    @property
    def name(self) -> str:
        """In tables and in the names of files."""

    def url(self, scheme: str) -> str:
        """Where it is, for one scheme."""

    def add_to(self, site: Site, folder: Path, addresses: Iterator[str]) -> None:
        """Gives its hosts a place in the site; its files are written below `folder`."""
