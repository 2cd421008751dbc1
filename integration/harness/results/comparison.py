"""The framework of every comparison: a contender is a program that runs for a while on a track of its own kind.

`harness/lab/contenders` compares ways over a slow link. `bench/contenders.py` compares programs on one core.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar


@dataclass
class Track:
    """The place where contenders run."""

    folder: Path

    def folder_of(self, name: str) -> Path:
        """A contender's own folder."""
        path = self.folder / name
        path.mkdir(exist_ok=True)
        return path


OnTrack = TypeVar("OnTrack", bound=Track)


class Contender(ABC, Generic[OnTrack]):
    """One of those that are compared."""

    name: str
    """In JSON, in tables, on command lines."""

    @abstractmethod
    def started(self, track: OnTrack) -> AbstractContextManager[Any]:
        """A context manager: its processes run."""

    def missing(self) -> str | None:
        """The reason why it cannot take part on this machine."""
        return None
