"""Figures: put together from rounds, printed beside their targets, kept as JSON for whoever compares runs."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Target:
    """What a figure is held to."""

    figure: str
    bound: float
    at_least: bool

    def is_met(self, value: float) -> bool:
        """Whether the figure is on the right side."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.bound:g}"


def at_least(figure: str, bound: float) -> Target:
    """More is better."""
    return Target(figure, bound, at_least=True)


def at_most(figure: str, bound: float) -> Target:
    """Less is better."""
    return Target(figure, bound, at_least=False)


def geometric_mean(values: Iterable[float]) -> float:
    """The mean of ratios: a page fifteen times as large as another has no more to say."""
    return statistics.geometric_mean(list(values))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios round by round: a round shares its minute, so what slows the machine slows both."""
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned, the first to the left; the first row is the head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) if not index else cell.rjust(width) for index, (cell, width) in cells)
        for cells in (list(enumerate(zip(row, widths, strict=True))) for row in rows)
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def verdicts(figures: dict[str, float | None], targets: Sequence[Target]) -> str:
    """Every figure that has a target, beside it."""
    rows = [["figure", "value", "target", ""]]
    for target in targets:
        value = figures.get(target.figure)
        if value is None or math.isnan(value):
            rows.append([target.figure, "absent", str(target), ""])
        else:
            rows.append([target.figure, f"{value:.3g}", str(target), "met" if target.is_met(value) else "NOT MET"])
    return table(rows)


def write(path: Path, figures: dict[str, float | None], **details: Any) -> None:
    """`figures` is what is compared from run to run; the details say how they came about."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"figures": figures, **details}, indent=1) + "\n")
