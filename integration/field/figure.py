"""The result of a measurement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figure:
    """A count of what went wrong, or a time."""

    value: float
    of: int
    """The number of cases."""
    detail: list[str] = field(default_factory=list)
    """A line for each case that went wrong."""


def wrong(cases: Iterable[tuple[str, str]]) -> Figure:
    """Counts the cases with a problem. A case is its name and the problem, or nothing."""
    every = list(cases)
    broken = [f"{name}: {problem}" for name, problem in every if problem]
    return Figure(len(broken), len(every), broken)


def together(figures: Iterable[Figure]) -> Figure:
    """The sum of several."""
    every = list(figures)
    return Figure(
        sum(one.value for one in every), sum(one.of for one in every), [line for one in every for line in one.detail]
    )
