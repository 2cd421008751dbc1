"""The project's goals for the experiments, each judged on the medians of one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from harness.lab.contenders.init_pair import FirstVisit, SecondDay

from .results import Cell, Results

NOISE = 1.02
"""Medians of a few loads differ by this much by chance alone; "never slower" allows no more."""

DEFAULT_PAIR, GZIP_PAIR = "longhaul-pair-default", "longhaul-pair-gzip"
DEFAULTS = ("longhaul-edge", "longhaul-pair", "longhaul-pair-started", DEFAULT_PAIR, FirstVisit.name, SecondDay.name)
TO_DIRECT, OF_PAIRS = {"longhaul-edge": 0.75, FirstVisit.name: 0.75}, 0.6
"""Bounds of load times to direct on geo. On a first visit, names cross the link. `make bench ONLY=names` has stricter
bounds for each page."""
CELLS = ("cdma-average", "cdma-congested")

VISITS = {
    (FirstVisit.name, "cnn", "https"): 0.48,
    (FirstVisit.name, "median-2025", "https"): 0.40,
    (FirstVisit.name, "cnn", "http"): 0.12,
    (FirstVisit.name, "median-2025", "http"): 0.27,
    (SecondDay.name, "cnn", "https"): 0.47,
    (SecondDay.name, "median-2025", "https"): 0.40,
}
"""Bounds of load times to direct on geo, for the pair of `pair init`: its best case, in which no lookup waits."""
PEERS = ("squid-explicit", "envoy-pair")
"""The peers that a user would pick today."""
README_LINKS, README_PAGE = ("geo", "maritime", "rural-lte"), "median-2025"
"""The rows of the table in README.md."""

Judged = tuple[str, float | None, float]
"""A goal's name, the measured value and its bound."""


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


STATED = (
    # The pages of `one-flight` over geo: bundling by a pair that has seen nothing, and by one box that is warm.
    ("pair_cnn_vs_direct", "load time to direct", "cnn", "longhaul-pair-bundling", 0.22),
    ("pair_modern_vs_direct", "load time to direct", "lab-modern", "longhaul-pair-bundling", 0.35),
    ("pair_cnn_vs_floor", "load time to the floor", "cnn", "longhaul-pair-bundling", 1.6),
    ("pair_modern_vs_floor", "load time to the floor", "lab-modern", "longhaul-pair-bundling", 1.6),
    ("edge_cnn_vs_direct", "load time to direct", "cnn", "longhaul-edge-full", 0.55),
    ("edge_modern_vs_direct", "load time to direct", "lab-modern", "longhaul-edge-full", 0.6),
    ("page_first_byte_added_ms_cnn", "milliseconds added to the first byte", "cnn", "longhaul-pair-bundling", 5.0),
    ("page_first_byte_added_ms_modern", "milliseconds added to the first byte", "lab-modern", "longhaul-pair-bundling",
     5.0),
    ("revisit_cnn_bytes_vs_no_bundling", "bytes of a revisit to those without bundling", "cnn",
     "longhaul-pair-bundling", 1.05),
    ("revisit_modern_bytes_vs_no_bundling", "bytes of a revisit to those without bundling", "lab-modern",
     "longhaul-pair-bundling", 1.05),
)  # fmt: skip
"""The goals of an experiment's own figures: the figure, what it is, page, contender and bound."""


def stated(figures: Mapping[str, float]) -> list[Goal]:
    """Returns the goals of these figures of an experiment that is more than page loads."""
    return [
        Goal(what, "geo", page, "http", contender, figures[name], bound)
        for name, what, page, contender, bound in STATED
        if name in figures
    ]


def visits(ratios: Mapping[tuple[str, str, str, str], float]) -> list[Goal]:
    """Returns the goals of both days of a pair. Load times to direct have the key link, page, scheme and contender."""
    found = [
        Goal("load time to direct, both days", "geo", page, scheme, contender, round(ratio, 4), bound)
        for (contender, page, scheme), bound in VISITS.items()
        if (ratio := ratios.get(("geo", page, scheme, contender))) is not None
    ]
    for (link, page, scheme, contender), ratio in ratios.items():
        if contender in (FirstVisit.name, SecondDay.name) and link in README_LINKS and page == README_PAGE:
            peers = [ratios[link, page, scheme, peer] for peer in PEERS if (link, page, scheme, peer) in ratios]
            if peers:
                found.append(
                    Goal("load time to best peer", link, page, scheme, contender, round(ratio / min(peers), 4), 1)
                )
    return found


def goals(results: Results) -> list[Goal]:
    """Returns every goal that these cells can judge."""
    ratios = {
        (cell.link, cell.page, cell.scheme, cell.contender): ratio
        for cell in results.cells.values()
        if cell.cache == "cold" and (ratio := results.to_direct(cell)) is not None
    }
    return [*_of_cells(results), *visits(ratios)]


def _of_cells(results: Results) -> list[Goal]:
    return [
        Goal(what, cell.link, cell.page, cell.scheme, cell.contender, round(value, 4), bound)
        for cell in results.cells.values()
        if cell.contender in DEFAULTS and cell.complete and cell.cache in JUDGES
        for what, value, bound in JUDGES[cell.cache](cell, results)
        if value is not None
    ]


def _of_first(cell: Cell, results: Results) -> Iterator[Judged]:
    """Yields the goals of a visitor's first page."""
    to_direct, to_ideal = results.to_direct(cell), results.to_ideal(cell)
    yield "never slower than direct", to_direct, NOISE
    if cell.link == "geo":
        yield "load time to direct", to_direct, TO_DIRECT.get(cell.contender, OF_PAIRS)
    if cell.link in CELLS and cell.contender == "longhaul-pair":
        yield "load time to ideal", to_ideal, 1.03
        least, ours = results.bound(cell.link, cell.page), cell.load_ms
        if least and ours and least.squeezed_ideal_ms < least.ideal_ms:
            yield "load time to the ideal for uncompressed bytes, with compression", ours.median / least.ideal_ms, 1.0
    carried, taken = _to_gzip(cell, results)
    yield "bytes to the pair with gzip alone", carried, 0.65
    yield "load time to the pair with gzip alone", taken, 0.72
    if cell.link == "cdma-congested" and cell.contender == "longhaul-edge":
        yield "load time to direct", to_direct, 0.75


def _of_second(cell: Cell, results: Results) -> Iterator[Judged]:
    """Yields the goals of a second page of the same site."""
    yield "second page never slower than direct", results.to_direct(cell), NOISE
    carried, taken = _to_gzip(cell, results)
    yield "bytes of a second page to the pair with gzip alone", carried, 0.55
    yield "load time of a second page to the pair with gzip alone", taken, 0.65


JUDGES: dict[str, Callable[[Cell, Results], Iterator[Judged]]] = {"cold": _of_first, "second": _of_second}
"""The goals of each visit of one browser. The same page again has none."""


def _to_gzip(cell: Cell, results: Results) -> tuple[float | None, float | None]:
    """Returns the bytes and the load time of the CNN page on a cell, relative to the pair with gzip alone."""
    gzip = results.cell(cell.link, cell.page, cell.scheme, GZIP_PAIR, cell.cache)
    if cell.contender != DEFAULT_PAIR or cell.link not in CELLS or cell.page != "cnn" or not gzip or not gzip.complete:
        return None, None
    carried, taken = (cell.median_of(what) / gzip.median_of(what) for what in ("bytes_down", "load_ms"))
    return carried, taken
