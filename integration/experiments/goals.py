"""The project's goals for the experiments, each judged on the medians of one run."""

from __future__ import annotations

from dataclasses import dataclass

from .results import Cell, Results

NOISE = 1.02
"""Medians of a few loads differ by this much by chance alone; "never slower" allows no more."""

DEFAULT_PAIR, WHOLE = "longhaul-pair-default", "longhaul-pair-whole"
DEFAULTS = ("longhaul-edge", "longhaul-pair", DEFAULT_PAIR)
CELLS = ("cdma-average", "cdma-congested")


@dataclass(frozen=True)
class Goal:
    """One goal on one link, page and scheme."""

    what: str
    link: str
    page: str
    scheme: str
    contender: str
    value: float
    bound: float

    @property
    def met(self) -> bool:
        """Returns whether the goal is met. In all of them, less is better."""
        return self.value <= self.bound


def goals(results: Results) -> list[Goal]:
    """Returns every goal that these cells can judge."""
    found = []
    for cell in results.cells.values():
        if cell.cache == "cold" and cell.contender in DEFAULTS and cell.complete:
            found += _of(cell, results)
    return found


def _of(cell: Cell, results: Results) -> list[Goal]:
    found = []

    def goal(what: str, value: float | None, bound: float) -> None:
        if value is not None:
            found.append(Goal(what, cell.link, cell.page, cell.scheme, cell.contender, round(value, 4), bound))

    to_direct, to_ideal = results.to_direct(cell), results.to_ideal(cell)
    goal("never slower than direct", to_direct, NOISE)
    if cell.link == "geo":
        goal("load time to direct", to_direct, 0.75 if cell.contender == "longhaul-edge" else 0.6)
    if cell.link in CELLS and cell.contender == "longhaul-pair":
        goal("load time to ideal", to_ideal, 1.03)
        least, ours = results.bound(cell.link, cell.page), cell.load_ms
        if least and ours and least.squeezed_ideal_ms < least.ideal_ms:
            goal("load time to the ideal for uncompressed bytes, with compression", ours.median / least.ideal_ms, 1.0)
    whole = results.cell(cell.link, cell.page, cell.scheme, WHOLE, cell.cache)
    if cell.contender == DEFAULT_PAIR and cell.link in CELLS and cell.page == "cnn" and whole and whole.complete:
        carried, taken = (cell.median_of(what) / whole.median_of(what) for what in ("bytes_down", "load_ms"))
        goal("bytes to the pair with whole images", carried, 0.65)
        goal("load time to the pair with whole images", taken, 0.72)
    if cell.link == "cdma-congested" and cell.contender == "longhaul-edge":
        goal("load time to direct", to_direct, 0.75)
    return found
