"""Differences that are known, each with its explanation; an entry that nothing needs any more is a fault itself."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from .compare import Difference

FILE = Path(__file__).resolve().parent / "exceptions.toml"

KEYS = {"page", "level", "dimension", "what", "why"}


class ExceptionsError(ValueError):
    """The file of exceptions is not as it should be."""


@dataclass(frozen=True)
class Known:
    """One entry."""

    page: str
    dimension: str
    what: str
    why: str
    level: str = "*"

    def covers(self, page: str, level: str, difference: Difference) -> bool:
        """Whether this entry explains the difference."""
        return (
            self.is_about(page, level)
            and difference.dimension in self.dimension.split()
            and _matches(self.what, difference.what)
        )

    def is_about(self, page: str, level: str) -> bool:
        """Whether this entry is about that page at that level."""
        return _matches(self.page, page) and self.level in ("*", level)


class Exceptions:
    """All entries, and which of them were needed."""

    def __init__(self, entries: Collection[Known]) -> None:
        self._entries = list(entries)
        self._used: set[Known] = set()

    def explain(self, page: str, level: str, difference: Difference) -> str | None:
        """The explanation of a difference, where there is one."""
        for entry in self._entries:
            if entry.covers(page, level, difference):
                self._used.add(entry)
                return entry.why
        return None

    def unused(self, ran: Collection[tuple[str, str]]) -> list[Known]:
        """Entries about pages that were compared, `ran` as (page, level), that explained nothing."""
        return [
            entry
            for entry in self._entries
            if entry not in self._used and any(entry.is_about(page, level) for page, level in ran)
        ]


def load(path: Path = FILE) -> Exceptions:
    """Reads the entries; an unknown or missing key is an error."""
    entries = []
    for number, raw in enumerate(tomllib.loads(path.read_text(encoding="utf-8")).get("exception", []), 1):
        unknown, missing = set(raw) - KEYS, KEYS - set(raw) - {"level"}
        if unknown or missing:
            raise ExceptionsError(f"{path}: exception {number}: unknown {sorted(unknown)}, missing {sorted(missing)}")
        entries.append(Known(**raw))
    return Exceptions(entries)


def _matches(pattern: str, text: str) -> bool:
    """`*` is any text; all else is itself, as URLs are full of what glob and regular expressions read otherwise."""
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.split("*")), text, re.DOTALL) is not None
