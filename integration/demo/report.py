"""Medians, checks, and the table that `make demo` prints."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from measure import Measured

from harness.clients.moved import true_url
from harness.lab.line import FURTHER_PROXY_ADDRESSES
from harness.pictures.screens import compare

DIRECT, EDGE = "direct", "longhaul-edge"
FIRST, SECOND = "longhaul-pair-first-visit", "longhaul-pair-second-day"
TITLES = {DIRECT: "without Longhaul", EDGE: "one box", FIRST: "a pair, first visit", SECOND: "a pair, second day"}
WAYS = tuple(TITLES)
"""In the order of their turns: the second day takes the state that the first visit left."""

BOUNDS = {
    # page over http, page over https: load time to that without Longhaul, at most
    EDGE: {"http": 0.85, "https": 1.05},
    FIRST: {"http": 0.6, "https": 0.8},
    SECOND: {"http": 0.5, "https": 0.65},
}
"""One box leaves https encrypted, and rarely gains on it."""

MOST_DIFFERING = 0.005
"""Share of pixels in which two screenshots may differ and still show the same page."""


@dataclass(frozen=True)
class Trip:
    """All loads of one page over one scheme, by way."""

    page: str
    scheme: str
    loads: dict[str, list[Measured]]

    @property
    def title(self) -> str:
        """Returns the title for headings."""
        return f"{self.page} page over {self.scheme}"

    def ratio(self, way: str) -> float:
        """Returns the median load time relative to that without Longhaul."""
        return median(LOAD, self.loads[way]) / median(LOAD, self.loads[DIRECT])


@dataclass(frozen=True)
class Column:
    """One figure of the table: its name, and the way it is shown."""

    what: str
    key: str
    value: Callable[[Measured], float]
    show: Callable[[float], str]


def seconds(milliseconds: float) -> str:
    """Formats milliseconds as seconds."""
    return f"{milliseconds / 1000:.1f} s"


def kilobytes(value: float) -> str:
    """Formats bytes in thousands."""
    return f"{value / 1000:,.0f} kB"


def count(value: float) -> str:
    """Formats a count. A median of two may be a half."""
    return f"{value:g}"


LOAD = Column("load time", "load_ms", lambda one: one.load.load_ms, seconds)
COLUMNS = (
    LOAD,
    Column("first paint", "first_paint_ms", lambda one: one.load.first_paint_ms, seconds),
    Column("first byte", "first_byte_ms", lambda one: one.load.first_byte_ms, seconds),
    Column("downlink", "bytes_down", lambda one: one.bytes_down, kilobytes),
    Column("uplink", "bytes_up", lambda one: one.bytes_up, kilobytes),
    Column("connections", "connections", lambda one: one.connections, count),
    Column("lookups", "dns_queries", lambda one: one.queries, count),
)
TITLE_WIDTH, COLUMN_WIDTH = 28, 13


def median(column: Column, loads: Sequence[Measured]) -> float:
    """Returns the column's median over the loads."""
    return statistics.median(column.value(one) for one in loads)


def table(trips: Sequence[Trip]) -> str:
    """Formats one block for each page, and one line for each way."""
    head = "".join(f"{column.what:>{COLUMN_WIDTH}}" for column in COLUMNS)
    lines = []
    for trip in trips:
        lines += [f"{trip.title:{TITLE_WIDTH}}{head}", *(_line(*row) for row in _rows(trip)), ""]
    return "\n".join(lines[:-1])


def _rows(trip: Trip) -> list[tuple[str, Sequence[Measured], float]]:
    """Returns the title, the loads, and the load time relative to direct."""
    return [(f"  {TITLES[way]}", loads, trip.ratio(way)) for way, loads in trip.loads.items()]


def _line(title: str, loads: Sequence[Measured], ratio: float) -> str:
    figures = "".join(f"{column.show(median(column, loads)):>{COLUMN_WIDTH}}" for column in COLUMNS)
    return f"{title:{TITLE_WIDTH}}{figures}" + ("" if ratio == 1 else f"{100 * (ratio - 1):+6.0f} %")


def figures(trips: Sequence[Trip]) -> dict[str, float]:
    """Returns all medians under their own names, and the ratios of load times."""
    found = {}
    for trip in trips:
        for way, loads in trip.loads.items():
            stem = f"{trip.page}_{trip.scheme}_{way}".replace("-", "_")
            found |= {f"{stem}_{column.key}": round(median(column, loads), 1) for column in COLUMNS}
            found[f"{stem}_ratio_to_direct"] = round(trip.ratio(way), 4)
    return found


def checks(trips: Sequence[Trip], *, bounded: bool) -> list[tuple[bool, str]]:
    """Returns the conditions, and whether each holds. `bounded` includes the load times, whose bounds hold for one
    link."""
    found = []
    for trip in trips:
        for way, bounds in BOUNDS.items():
            name, bound, ratio = f"{trip.title}, {TITLES[way]}", bounds[trip.scheme], trip.ratio(way)
            limit = f" (at most {bound})" if bounded else ""
            missing = sorted(missing_objects(trip.loads[DIRECT], trip.loads[way]))
            first, second = (trip.loads[one][0].load.screenshot for one in (DIRECT, way))
            differing = compare(first, second).differing
            found += [
                (not missing, f"{name}: every object loads {' '.join(missing[:5])}".rstrip()),
                (differing <= MOST_DIFFERING, f"{name}: the page looks the same ({100 * differing:.2f} % differs)"),
                (ratio <= bound or not bounded, f"{name}: {ratio:.2f} of the load time without Longhaul{limit}"),
            ]  # fmt: skip
    return found


def missing_objects(without: Sequence[Measured], with_longhaul: Sequence[Measured]) -> set[str]:
    """Returns the objects that loaded every time without Longhaul and failed at least once with it.

    Every time, because some scripts request a URL with a random number. No other load has that URL.
    """
    always = set.intersection(*(_true_objects(one) for one in without))
    return set().union(*(always - _true_objects(one) for one in with_longhaul))


def _true_objects(one: Measured) -> set[str]:
    """Returns the loaded objects by true URL, without the scheme: a browser itself turns http into https for some
    hosts."""
    own = set(FURTHER_PROXY_ADDRESSES)
    return {true_url(request.url, own).split(":", 1)[1] for request in one.load.loaded()}
