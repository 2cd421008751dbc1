"""The figures of `make bench ONLY=field`: counts of what went wrong, and times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Counted:
    """One figure."""

    value: float
    of: int
    """The number of cases."""
    wrong: list[str] = field(default_factory=list)
    """A line for each case that went wrong."""


def count(cases: Iterable[tuple[str, str]]) -> Counted:
    """Counts the cases with a problem. A case is its name and the problem, which is empty for a case that went well."""
    every = list(cases)
    wrong = [f"{name}: {problem}" for name, problem in every if problem]
    return Counted(len(wrong), len(every), wrong)


def together(figures: Iterable[Counted]) -> Counted:
    """Adds figures."""
    every = list(figures)
    lines = [line for one in every for line in one.wrong]
    return Counted(sum(one.value for one in every), sum(one.of for one in every), lines)
