"""Known differences, each with its explanation. An entry that is no longer needed is itself a fault."""

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
    """The file of exceptions has an unknown or missing key."""


@dataclass(frozen=True)
class Known:
    """One entry."""

    page: str
    dimension: str
    what: str
    why: str
    level: str = "*"

    def covers(self, page: str, level: str, difference: Difference) -> bool:
        """Returns whether this entry explains the difference."""
        return (
            self.is_about(page, level)
            and difference.dimension in self.dimension.split()
            and _matches(self.what, difference.what)
        )

    def is_about(self, page: str, level: str) -> bool:
        """Returns whether this entry concerns that page at that level."""
        return _matches(self.page, page) and self.level in ("*", level)


class Exceptions:
    """All entries, and which of them were needed."""

    def __init__(self, entries: Collection[Known]) -> None:
        self._entries = list(entries)
        self._used: set[Known] = set()

    def explain(self, page: str, level: str, difference: Difference) -> str | None:
        """Returns the explanation of a difference, if there is one."""
        for entry in self._entries:
            if entry.covers(page, level, difference):
                self._used.add(entry)
                return entry.why
        return None

    def unused(self, ran: Collection[tuple[str, str]]) -> list[Known]:
        """Returns entries that explained nothing although their pages were compared. `ran` holds (page, level)."""
        return [
            entry
            for entry in self._entries
            if entry not in self._used and any(entry.is_about(page, level) for page, level in ran)
        ]


def load(path: Path = FILE) -> Exceptions:
    """Reads the entries. An unknown or missing key is an error."""
    entries = []
    for number, raw in enumerate(tomllib.loads(path.read_text(encoding="utf-8")).get("exception", []), 1):
        unknown, missing = set(raw) - KEYS, KEYS - set(raw) - {"level"}
        if unknown or missing:
            raise ExceptionsError(f"{path}: exception {number}: unknown {sorted(unknown)}, missing {sorted(missing)}")
        entries.append(Known(**raw))
    return Exceptions(entries)


def _matches(pattern: str, text: str) -> bool:
    """Matches a pattern in which `*` is any text. All else is literal, because glob and regular expressions misread
    URLs."""
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.split("*")), text, re.DOTALL) is not None
