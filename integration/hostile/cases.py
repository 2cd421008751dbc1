"""A case is one attack, and a family is a list of them. The suite runs families against targets and prints one
table."""

from __future__ import annotations

import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .beds import Target


@dataclass(frozen=True)
class Case:
    """One attack. `attack` returns a description of the fault, or an empty string if the target held."""

    name: str
    attack: Callable[[Target], str]
    targets: tuple[str, ...] = ("edge", "pair")
    is_long: bool = False
    """Only `make test-long` runs it."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case."""

    family: str
    case: str
    target: str
    broke: str

    def __str__(self) -> str:
        return f"{self.family}/{self.case} on {self.target}: {self.broke}"


def run(family: str, cases: Iterable[Case], target: Target, *, long: bool) -> list[Outcome]:
    """Runs the cases of a family that apply to a target, one after the other."""
    outcomes = []
    for case in cases:
        if target.name not in case.targets or (case.is_long and not long):
            continue
        try:
            broke = case.attack(target)
        except Exception:
            broke = traceback.format_exc(limit=-3)
        outcomes.append(Outcome(family, case.name, target.name, broke))
    return outcomes


def table(outcomes: Iterable[Outcome]) -> str:
    """Formats the cases, held and broken, by family and target, with a line for each broken one."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    broken = []
    for one in outcomes:
        counts[one.family, one.target][bool(one.broke)] += 1
        if one.broke:
            broken.append(f"  {one}")
    rows = [("family", "target", "cases", "held", "broken")]
    rows += [(*key, str(held + bad), str(held), str(bad)) for key, (held, bad) in counts.items()]
    total_held, total_bad = (sum(one[index] for one in counts.values()) for index in (0, 1))
    rows.append(("all", "", str(total_held + total_bad), str(total_held), str(total_bad)))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = [
        "  ".join(
            cell.ljust(width) if index < 2 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([*lines, *broken])
