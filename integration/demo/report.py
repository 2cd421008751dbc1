"""Medians, checks, and the table that `make demo` prints."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from measure import Measured

from harness.bed import OWN
from harness.moved import true_url

GOAL = 0.15
"""How much sooner the page is to load, as a share of the time without Longhaul."""

MOST_DIFFERING = 0.005
"""Share of pixels in which two screenshots may differ and still show the same page."""


@dataclass(frozen=True)
class Row:
    """One line of the table: what is counted, how it is shown."""

    what: str
    key: str
    value: Callable[[Measured], float]
    show: Callable[[float], str]


def seconds(milliseconds: float) -> str:
    """Milliseconds as a reader likes them."""
    return f"{milliseconds / 1000:.2f} s"


def number(value: float) -> str:
    """A count; a median of two may be a half."""
    return f"{value:g}"


def kilobytes(value: float) -> str:
    """Bytes in thousands."""
    return f"{value / 1000:.0f} kB"


ROWS = (
    Row("time to load", "load_ms", lambda one: one.load.load_ms, seconds),
    Row("time to the first byte", "first_byte_ms", lambda one: one.load.first_byte_ms, seconds),
    Row("objects loaded", "objects", lambda one: len(true_objects(one)), number),
    Row("DNS queries on the link", "dns_queries", lambda one: one.queries, number),
    Row("names asked for", "names", lambda one: len(one.names), number),
    Row("TCP connections on the link", "tcp_connections", lambda one: one.connections, number),
    Row("bytes towards the client", "bytes_down", lambda one: one.bytes_down, kilobytes),
    Row("bytes from the client", "bytes_up", lambda one: one.bytes_up, kilobytes),
)


def true_objects(one: Measured) -> set[str]:
    """What loaded, by true URL. Without the scheme: a browser turns http into https by itself for hosts it knows."""
    return {true_url(request.url, OWN).split(":", 1)[1] for request in one.load.loaded()}


def median(row: Row, loads: Sequence[Measured]) -> float:
    """The row's median over the loads."""
    return statistics.median(row.value(one) for one in loads)


def figures(without: Sequence[Measured], with_longhaul: Sequence[Measured]) -> dict[str, float]:
    """All medians under names of their own, and the ratio of load times."""
    result = {}
    for row in ROWS:
        result[f"demo_without_{row.key}"] = median(row, without)
        result[f"demo_with_{row.key}"] = median(row, with_longhaul)
    result["demo_load_ratio"] = result["demo_with_load_ms"] / result["demo_without_load_ms"]
    return result


def table(without: Sequence[Measured], with_longhaul: Sequence[Measured]) -> str:
    """The medians side by side."""
    lines = [f"{'':30}{'without':>12}{'with Longhaul':>16}"]
    for row in ROWS:
        before, after = median(row, without), median(row, with_longhaul)
        change = f"{100 * (after / before - 1):+8.0f} %" if before and before != after else ""
        lines.append(f"{row.what:30}{row.show(before):>12}{row.show(after):>16}{change}")
    spread = [f"{min(times):.0f} to {max(times):.0f} ms" for times in (_times(without), _times(with_longhaul))]
    lines.append(f"{'load times from and to':30}{spread[0]:>12}, {spread[1]}")
    return "\n".join(lines)


def _times(loads: Sequence[Measured]) -> list[float]:
    return [one.load.load_ms for one in loads]


def missing_objects(without: Sequence[Measured], with_longhaul: Sequence[Measured]) -> set[str]:
    """What loaded every time without Longhaul and failed to at least once with it.

    Every time, because some scripts ask for a URL with a random number in it: no other load has that one.
    """
    always = set.intersection(*(true_objects(one) for one in without))
    return set().union(*(always - true_objects(one) for one in with_longhaul))
