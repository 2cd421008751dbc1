"""The results of loads: medians with quartiles of the complete ones. Incomplete ones are counted, never averaged."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.lab.ideal import Bound, Weight, bound
from harness.lab.links import link
from harness.lab.measure import Run


@dataclass(frozen=True)
class Spread:
    """A median between its quartiles."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Cell:
    """All loads of one page by one contender on one link."""

    experiment: str
    link: str
    page: str
    scheme: str
    contender: str
    cache: str
    runs: tuple[Run, ...]

    @property
    def complete(self) -> list[Run]:
        """Returns the loads that count."""
        return [run for run in self.runs if run.complete]

    @property
    def failed(self) -> list[Run]:
        """Returns the loads that do not count."""
        return [run for run in self.runs if not run.complete]

    @property
    def load_ms(self) -> Spread | None:
        """Returns the load times, or None when no load was complete."""
        return spread([run.load_ms for run in self.complete])

    def median_of(self, value: str) -> float:
        """Returns the median of one of a run's numbers over the complete loads."""
        return statistics.median(getattr(run, value) for run in self.complete)

    def typical(self) -> Run | None:
        """Returns the load nearest to the median."""
        middle = self.load_ms
        return min(self.complete, key=lambda run: abs(run.load_ms - middle.median)) if middle else None


class Results:
    """All cells of an experiment, with the bounds of its pages."""

    def __init__(self, runs: Iterable[Run], weights: dict[str, Weight]) -> None:
        by_key: dict[tuple[str, ...], list[Run]] = {}
        for run in runs:
            key = (run.experiment, run.link, run.page, run.scheme, run.contender, run.cache)
            by_key.setdefault(key, []).append(run)
        self.cells = {key[1:]: Cell(*key, runs=tuple(found)) for key, found in by_key.items()}
        self._weights = weights

    def cell(self, link_name: str, page: str, scheme: str, contender: str, cache: str = "cold") -> Cell | None:
        """Returns one cell, if it exists."""
        return self.cells.get((link_name, page, scheme, contender, cache))

    def bound(self, link_name: str, page: str) -> Bound | None:
        """Returns the bounds of a page on a link, or None if the page was never weighed."""
        return bound(self._weights[page], link(link_name)) if page in self._weights else None

    def to_direct(self, cell: Cell) -> float | None:
        """Returns a cell's median load time relative to direct."""
        direct = self.cell(cell.link, cell.page, cell.scheme, "direct", cell.cache)
        ours, theirs = cell.load_ms, direct.load_ms if direct else None
        return ours.median / theirs.median if ours and theirs else None

    def to_ideal(self, cell: Cell) -> float | None:
        """Returns a cell's median load time relative to the ideal."""
        least, ours = self.bound(cell.link, cell.page), cell.load_ms
        return ours.median / least.ideal_ms if ours and least and cell.cache == "cold" else None

    def conditions(self) -> list[tuple[str, str, str, str]]:
        """Returns link, page, scheme and cache of every row of a report, in the order of their first appearance."""
        return list(dict.fromkeys((link, page, scheme, cache) for link, page, scheme, _, cache in self.cells))

    def figures(self) -> dict[str, float]:
        """Returns every number under its own name."""
        found: dict[str, float] = {}
        for link_name, page in dict.fromkeys((cell.link, cell.page) for cell in self.cells.values()):
            if least := self.bound(link_name, page):
                found[_name(link_name, page, "ideal_ms")] = round(least.ideal_ms, 1)
                found[_name(link_name, page, "ideal_compressed_ms")] = round(least.squeezed_ideal_ms, 1)
                found[_name(link_name, page, "floor_ms")] = round(least.floor_ms, 1)
        for cell in self.cells.values():
            found |= self._cell_figures(cell)
        return found

    def _cell_figures(self, cell: Cell) -> dict[str, float]:
        warm = () if cell.cache == "cold" else (cell.cache,)
        stem = (cell.link, cell.page, cell.scheme, cell.contender, *warm)
        found: dict[str, float] = {_name(*stem, "loads"): len(cell.runs), _name(*stem, "failures"): len(cell.failed)}
        if middle := cell.load_ms:
            found |= {
                _name(*stem, "load_ms"): round(middle.median, 1),
                _name(*stem, "load_low_ms"): round(middle.low, 1),
                _name(*stem, "load_high_ms"): round(middle.high, 1),
                _name(*stem, "first_byte_ms"): round(cell.median_of("first_byte_ms"), 1),
                _name(*stem, "bytes_down"): cell.median_of("bytes_down"),
                _name(*stem, "bytes_up"): cell.median_of("bytes_up"),
                _name(*stem, "connections"): cell.median_of("connections"),
                _name(*stem, "dns_queries"): cell.median_of("dns_queries"),
            }
        for what, ratio in (("ratio_to_direct", self.to_direct(cell)), ("ratio_to_ideal", self.to_ideal(cell))):
            if ratio is not None:
                found[_name(*stem, what)] = round(ratio, 4)
        return found


def spread(values: Sequence[float]) -> Spread | None:
    """Returns median and quartiles, or for fewer than three values the least and the most."""
    if not values:
        return None
    if len(values) < 3:
        return Spread(statistics.median(values), min(values), max(values))
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(middle, low, high)


def _name(*parts: str) -> str:
    return "_".join(part.replace("-", "_") for part in parts)
