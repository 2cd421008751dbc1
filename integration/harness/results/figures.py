"""Computes figures from rounds, prints them beside their targets, and writes them as JSON to compare runs."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Target:
    """The bound of a figure."""

    figure: str
    bound: float
    at_least: bool

    def is_met(self, value: float) -> bool:
        """Returns true if the figure is on the right side of the bound."""
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
    """The mean of ratios. A page fifteen times as large as another has no more weight."""
    return statistics.geometric_mean(list(values))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios round by round. Both values of a round share a minute, so a slow machine slows both."""
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))


def table(rows: Sequence[Sequence[str]]) -> str:
    """Returns the rows as text with aligned columns, the first to the left. The first row is the head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) if not index else cell.rjust(width) for index, (cell, width) in cells)
        for cells in (list(enumerate(zip(row, widths, strict=True))) for row in rows)
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def verdicts(figures: dict[str, float | None], targets: Sequence[Target]) -> str:
    """Returns every figure that has a target, beside the target."""
    rows = [["figure", "value", "target", ""]]
    for target in targets:
        value = figures.get(target.figure)
        if value is None or math.isnan(value):
            rows.append([target.figure, "absent", str(target), ""])
        else:
            rows.append([target.figure, f"{value:.3g}", str(target), "met" if target.is_met(value) else "NOT MET"])
    return table(rows)


def write(path: Path, figures: dict[str, float | None], targets: Sequence[Target] = (), **details: Any) -> None:
    """Writes `figures`, which are compared from run to run, their goals, and the details of how they came about.
    `integration/results/goals` reads the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    goals = [asdict(target) for target in targets]
    path.write_text(json.dumps({"figures": figures, "goals": goals, **details}, indent=1) + "\n")
