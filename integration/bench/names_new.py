"""Names that nobody looked up before, many at once: by a pair without a list, and without boxes.

A client looks up eighty names in one moment over a geostationary link. The names are new in each round, and both ways
take turns. A remote has room for 128 streams of lookups, so no name waits for another one.
`names_fetches` has the same for clients that load something from each name.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from bench import names_fetches
from bench.names_pairs import Way, side_by_side, site_of
from bench.names_queries import Lookup, Pace, look_up, p95, questions, seconds_of
from bench.names_remote import responses
from harness.lab.links import link
from harness.lab.quiet import wait_until_quiet
from harness.results.figures import at_most, ratio, table

TARGETS = [
    *names_fetches.TARGETS,
    at_most("lookup_bytes_up", 150),
    at_most("new_lookups_failed", 0),
]
LINK = "geo"
AT_ONCE = 80
ROUNDS, QUICK_ROUNDS = 9, 2
SPREAD, QUICK_SPREAD = 600, 150
SPREAD_PACE = Pace(pause_s=0.02)
"""Of the queries that leave one by one."""


@dataclass(frozen=True)
class Round:
    """The lookups of one moment by one way."""

    p50_s: float
    p95_s: float
    slowest_s: float
    failed: int
    retried: int
    bytes_up: int
    bytes_down: int
    streams: int
    """Responses that came to the remote by streams of the pipe."""
    connections: int
    """Those that came by connections."""
    udp_on_link: int
    """Queries that crossed the link as datagrams."""


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Looks up names, and loads from names. Returns the figures of both."""
    (lookups, fetches) = (folder / name for name in ("lookups", "fetches"))
    lookups.mkdir()
    fetches.mkdir()
    figures, details = measure_lookups(lookups, quick=quick)
    more_figures, more_details = names_fetches.measure(fetches, quick=quick)
    return figures | more_figures, {"lookups": details, "fetches": more_details}


def measure_lookups(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Looks up names by both ways in turns, and then some by the pair one by one."""
    turns = range(QUICK_ROUNDS if quick else ROUNDS)
    rounds = [[f"n{number}.r{turn}.example.org" for number in range(AT_ONCE)] for turn in turns]
    spread = [f"n{number}.spread.example.org" for number in range(QUICK_SPREAD if quick else SPREAD)]
    names = {name: f"203.0.113.{60 + number % 190}" for number, name in enumerate(chain(*rounds, spread))}
    seen: dict[str, list[Round]] = {"pair": [], "direct": []}
    with side_by_side(folder, site_of(names), LINK) as ways:
        for wanted in rounds:
            for way in ways:
                seen[way.name].append(one_round(way, wanted, names))
        one_by_one = one_round(ways[0], spread, names, SPREAD_PACE)
    print(rows(seen, one_by_one), flush=True)
    return figures_of(seen, one_by_one), {
        "rounds": {way: [asdict(one) for one in every] for way, every in seen.items()},
        "one by one": asdict(one_by_one),
    }


def one_round(way: Way, wanted: Sequence[str], truth: dict[str, str], pace: Pace | None = None) -> Round:
    """Looks up names that are all new."""
    wait_until_quiet(way.wire, link(LINK).rtt_ms)
    before = responses(way)
    way.wire.reset()
    lookups = look_up(way.line.clients, questions(wanted), pace)
    wait_until_quiet(way.wire, link(LINK).rtt_ms)
    seen = way.wire.statistics()
    streams, connections = (now - then for now, then in zip(responses(way), before, strict=True))
    wrong = [one for one in lookups if not one.failed and one.addresses != [truth[one.question.name]]]
    if wrong:
        raise RuntimeError(f"{way.name}: {len(wrong)} lookups have another address than the origin's: {wrong[0]}")
    done = Round(
        *times(lookups), sum(one.failed for one in lookups), sum(one.attempts > 1 for one in lookups),
        seen["up"]["carried"]["bytes"], seen["down"]["carried"]["bytes"], streams, connections, seen["dns"]["queries"],
    )  # fmt: skip
    check_way(way, done, len(wanted))
    return done


def times(lookups: Sequence[Lookup]) -> tuple[float, float, float]:
    """Returns the median, the 95th percentile and the longest of the times."""
    seconds = seconds_of(lookups)
    return statistics.median(seconds), p95(seconds), max(seconds)


def check_way(way: Way, done: Round, asked: int) -> None:
    """Raises unless the queries took the way that they are counted for."""
    if way.pair and (done.udp_on_link or done.streams + done.connections < asked - done.failed):
        raise RuntimeError(f"the pair was not used by all lookups: {done}")
    if not way.pair and done.udp_on_link < asked:
        raise RuntimeError(f"lookups did not go directly: {done}")


def figures_of(seen: dict[str, list[Round]], one_by_one: Round) -> dict[str, float | None]:
    """Returns the ratios, and the bytes of a lookup."""
    ours, theirs = seen["pair"], seen["direct"]
    return {
        "new_lookups_p50_vs_direct": ratio([one.p50_s for one in ours], [one.p50_s for one in theirs]),
        "new_lookups_p95_vs_direct": ratio([one.p95_s for one in ours], [one.p95_s for one in theirs]),
        "lookup_bytes_up": sum(one.bytes_up for one in ours) / (AT_ONCE * len(ours)),
        "lookup_bytes_up_one_by_one": one_by_one.bytes_up / (one_by_one.streams + one_by_one.connections),
        "lookup_bytes_up_direct": sum(one.bytes_up for one in theirs) / (AT_ONCE * len(theirs)),
        "new_lookups_failed": sum(one.failed for one in [*ours, one_by_one]),
    }


def rows(seen: dict[str, list[Round]], one_by_one: Round) -> str:
    """Returns the table of the rounds."""
    head = ["lookups", "p50 s", "p95 s", "slowest s", "failed", "retried", "bytes up", "by streams", "by connections"]
    lines = [head]
    for name, one in _named(seen, one_by_one):
        seconds = [f"{value:.3f}" for value in (one.p50_s, one.p95_s, one.slowest_s)]
        counts = [str(value) for value in (one.failed, one.retried, one.bytes_up, one.streams, one.connections)]
        lines.append([name, *seconds, *counts])
    return table(lines)


def _named(seen: dict[str, list[Round]], one_by_one: Round) -> Iterator[tuple[str, Round]]:
    for way, every in seen.items():
        yield from ((f"{way}, round {number + 1}", one) for number, one in enumerate(every))
    yield "pair, one by one", one_by_one
