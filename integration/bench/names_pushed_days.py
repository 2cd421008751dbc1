"""A day in small at one remote: three clients visit sites, and visit them again after a night.

Each visit looks up the name of a page. A round trip after its response it looks up the other names of the page, all at
once. A browser does so when the page is there, which takes a round trip at least. The clients have addresses of their
own, and begin at different sites. In the night both boxes are restarted, eight hours pass for the memory of the remote
(`names_night`), and every name gets another address. A fifth of the names of the second day are new. The remote and the
ground keep their folders, and with them what they know of each other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.names_pushed_remotes import Counts, counts_of, restart, until_stream
from bench.names_queries import Lookup, look_up, questions
from bench.names_second_day import (
    LINK,
    NIGHT_S,
    QUICK_SITES,
    SITES,
    TODAY,
    YESTERDAY,
    Visit,
    at_zero_rtt,
    refreshed_names,
    resolving,
    visits_of,
)
from harness.boxes.pair import Pair
from harness.lab import names_night
from harness.lab.init_pair import pair_of_init
from harness.lab.line import Line
from harness.lab.links import link
from harness.lab.quiet import wait_until_quiet
from harness.net.topology import CLIENT, CLIENT_DEVICE
from harness.results.figures import at_least, table

TARGETS = [at_least("lookups_at_zero_rtt", 0.9)]
CLIENTS = (CLIENT, "192.0.2.3", "192.0.2.4")
PAGE_S = link(LINK).rtt_ms / 1000
"""The least time of a page over the link."""


@dataclass(frozen=True)
class Day:
    """The lookups of a day by their order at a site: those of the first client there, of the second and of the third.
    And what the remote counted."""

    by_turn: list[list[Lookup]]
    counts: Counts

    @property
    def every(self) -> list[Lookup]:
        """All lookups."""
        return [one for turn in self.by_turn for one in turn]


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Lets three clients visit the sites on both days."""
    visits = visits_of(QUICK_SITES if quick else SITES)
    known = [name for one in visits for name in one.known]
    homes = [folder / day for day in ("first", "second")]
    for home in homes:
        home.mkdir()
    with Line(folder, LINK, seed=1) as line, several(line), pair_of_init(folder, line, link(LINK).setting) as both:
        until_stream(both)
        with resolving(line, homes[0], known, YESTERDAY):
            first = day_of(line, both, [visit.known for visit in visits])
        check(first, YESTERDAY)
        kept = night(both)
        with resolving(line, homes[1], [*known, *(name for visit in visits for name in visit.new)], TODAY):
            assert line.link
            wait_until_quiet(line.link, link(LINK).rtt_ms)
            second = day_of(line, both, [names_of(visit) for visit in visits])
            everyday = set(known)
            refreshed = refreshed_names(line, [one for one in second.by_turn[0] if one.question.name in everyday])
    print(rows({"first day": first, "second day": second}), flush=True)
    return figures_of(second), {
        "counters of the first day": asdict(first.counts),
        "counters of the second day": asdict(second.counts),
        "responses kept over the night": kept,
        "known names with today's address after a refresh": refreshed,
    }


@contextmanager
def several(line: Line, clients: Sequence[str] = CLIENTS) -> Iterator[None]:
    """Gives the clients' namespace an address for each client. The namespace ends with the line."""
    for address in clients[1:]:
        line.clients.ip("address", "add", f"{address}/32", "dev", CLIENT_DEVICE)
    yield


def names_of(visit: Visit) -> list[str]:
    """Returns the names of a site on the second day, that of its page first."""
    return [*visit.known, *visit.new]


def day_of(line: Line, both: Pair, sites: Sequence[Sequence[str]]) -> Day:
    """Lets each client visit each site. The first name of a site is that of its page."""
    before = counts_of(both.remote)
    by_turn: list[list[Lookup]] = [[] for _ in CLIENTS]
    visited = [0] * len(sites)
    for step in range(len(sites)):
        for number, client in enumerate(CLIENTS):
            at = (step + number * len(sites) // len(CLIENTS)) % len(sites)
            by_turn[visited[at]] += site_visit(line, sites[at], client)
            visited[at] += 1
    return Day(by_turn, counts_of(both.remote) - before)


def site_visit(line: Line, names: Sequence[str], client: str = CLIENT, page_s: float = PAGE_S) -> list[Lookup]:
    """Looks up the name of a page, and the other ones at once after the time that the page takes."""
    page = look_up(line.clients, questions(names[:1]), source=client)
    time.sleep(page_s)
    return [*page, *look_up(line.clients, questions(names[1:]), source=client)]


def check(day: Day, address: str) -> None:
    """Raises if a name has another response, or if the first client at a site got one without a round trip."""
    for one in day.every:
        if one.addresses != [address]:
            raise RuntimeError(f"a lookup has another response than the origin's: {one}")
    if any(at_zero_rtt(one) for one in day.by_turn[0]):
        raise RuntimeError("a name was known before any client looked it up")


def night(both: Pair) -> int:
    """Restarts both boxes, with eight hours in between. Returns the responses that the remote kept."""
    both.remote.child.stop()
    with both.without_ground():
        kept = names_night.age(both.remote.state, NIGHT_S)
    restart(both)
    return kept


def share(lookups: Sequence[Lookup]) -> float:
    """Returns the share of lookups with a response before any could cross the link."""
    return sum(map(at_zero_rtt, lookups)) / len(lookups)


def figures_of(day: Day) -> dict[str, float | None]:
    """Returns the share of lookups without a round trip: of all clients, and of the first one at each site."""
    return {
        "lookups_at_zero_rtt": share(day.every),
        "lookups_at_zero_rtt_first_client": share(day.by_turn[0]),
        "second_day_lookups_failed": sum(one.failed for one in day.every),
    }


def rows(days: dict[str, Day]) -> str:
    """Returns the table of lookups, with the counters of the remote beside them."""
    lines = [["lookups", "number", "at no round trip", "failed"]]
    for name, day in days.items():
        for turn, lookups in zip(("first", "second", "third"), day.by_turn, strict=True):
            counts = (len(lookups), sum(map(at_zero_rtt, lookups)), sum(one.failed for one in lookups))
            lines.append([f"{name}, {turn} client of a site", *map(str, counts)])
        lines.append([f"{name}, by the remote's counters", str(day.counts.from_memory + day.counts.over_link),
                      str(day.counts.from_memory), "-"])  # fmt: skip
        print(f"{name}: {day.counts}", flush=True)
    return table(lines)
