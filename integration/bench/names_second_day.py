"""The second day of a pair without a list: sites of yesterday with some new names, and servers that moved in the night.

A client visits sites one after the other, and looks up all names of a site at once. In the night both boxes are
restarted, eight hours pass for the memory of the remote (`names_night`), and every name gets another address. Without
its restart, the cache of the ground would still hold yesterday's addresses, because no hours pass for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.names_pairs import site_of
from bench.names_queries import Lookup, look_up, questions
from bench.names_remote import counted
from harness.boxes.pair import Pair
from harness.host.waiting import wait_for
from harness.lab import names_night
from harness.lab.init_pair import pair_of_init
from harness.lab.line import Line
from harness.lab.links import link
from harness.lab.quiet import wait_until_quiet
from harness.origins.program import Origins
from harness.results.figures import at_least, at_most, table

TARGETS = [at_least("lookups_at_zero_rtt", 0.75), at_most("restart_names_lost", 0)]
LINK = "geo"
NIGHT_S = 8 * 3600
SITES, QUICK_SITES = 30, 8
NAMES_OF_A_SITE = 10
NEW_SHARE = 0.2
TODAY, YESTERDAY = "203.0.113.20", "203.0.113.10"
STALE_TTL_S = 30
"""RFC 8767, section 4."""


@dataclass(frozen=True)
class Visit:
    """The names of a site."""

    known: list[str]
    new: list[str]
    """Names that the site did not have yesterday."""


@dataclass(frozen=True)
class Day:
    """The lookups of the second day, and what the remote counted."""

    known: list[Lookup]
    new: list[Lookup]
    from_memory: int
    over_link: int


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Lets a client visit the sites on both days."""
    visits = visits_of(QUICK_SITES if quick else SITES)
    known = [name for visit in visits for name in visit.known]
    homes = [folder / day for day in ("first", "second")]
    for home in homes:
        home.mkdir()
    with Line(folder, LINK, seed=1) as line, pair_of_init(folder, line, link(LINK).setting) as both:
        with resolving(line, homes[0], known, YESTERDAY):
            first = [one for visit in visits for one in site_lookups(line, visit.known)]
        check_first(first)
        kept = night(both)
        with resolving(line, homes[1], [*known, *(name for visit in visits for name in visit.new)], TODAY):
            assert line.link
            wait_until_quiet(line.link, link(LINK).rtt_ms)
            second = second_day(line, both, visits)
            refreshed = refreshed_names(line, second.known)
    print(rows(first, second), flush=True)
    return figures_of(second), {
        "lookups on the first day": len(first),
        "responses kept over the night": kept,
        "served from memory": second.from_memory,
        "asked over the link": second.over_link,
        "known names with today's address after a refresh": refreshed,
        "slowest known, s": max((one.seconds or 0 for one in second.known), default=0),
    }


def visits_of(sites: int) -> list[Visit]:
    """Returns the visits of the second day."""
    new = round(NAMES_OF_A_SITE * NEW_SHARE)
    return [
        Visit(
            [f"h{number}.site{site}.example.org" for number in range(NAMES_OF_A_SITE)],
            [f"new{number}.site{site}.example.org" for number in range(new)],
        )
        for site in range(sites)
    ]


@contextmanager
def resolving(line: Line, home: Path, names: Sequence[str], address: str) -> Iterator[None]:
    """A name server that has this address for every name."""
    with Origins(site_of(dict.fromkeys(names, address)).write(home / "site.json"), home, line.internet):
        yield


def site_lookups(line: Line, names: Sequence[str]) -> list[Lookup]:
    """Looks up the names of one site at once."""
    return look_up(line.clients, questions(names))


def check_first(lookups: Sequence[Lookup]) -> None:
    """Raises if a name has no response, or one that did not cross the link."""
    for one in lookups:
        if one.addresses != [YESTERDAY] or one.seconds is None or one.seconds < link(LINK).rtt_ms / 1000:
            raise RuntimeError(f"a lookup of the first day: {one}")


def night(both: Pair) -> int:
    """Restarts both boxes, with eight hours in between. Returns the responses that the remote kept."""
    both.remote.child.stop()
    with both.without_ground():
        kept = names_night.age(both.remote.state, NIGHT_S)
    both.remote.__enter__()
    both.until_piped()
    return kept


def second_day(line: Line, both: Pair, visits: Sequence[Visit]) -> Day:
    """Visits all sites again."""
    known, new = [], []
    for visit in visits:
        for one in site_lookups(line, [*visit.known, *visit.new]):
            (known if one.question.name in visit.known else new).append(one)
    from_memory = counted(both.remote, "coredns_remember_hits_total")
    over_link = counted(both.remote, "coredns_remember_asked_total", reason="new")
    return Day(known, new, int(from_memory), int(over_link))


def refreshed_names(line: Line, known: Sequence[Lookup]) -> int:
    """Waits until all names have today's address. Returns how many have it, after a while."""
    names = [one.question.name for one in known]

    def refreshed() -> int:
        return sum(one.addresses == [TODAY] for one in site_lookups(line, names))

    try:
        wait_for("all refreshes", lambda: refreshed() == len(names), timeout_s=20, interval_s=1)
    except AssertionError as reason:
        print(reason, flush=True)
    return refreshed()


def at_zero_rtt(one: Lookup) -> bool:
    """Returns true if a lookup had a response before any could cross the link."""
    return not one.failed and one.seconds is not None and one.seconds < link(LINK).rtt_ms / 2000


def figures_of(day: Day) -> dict[str, float | None]:
    """Returns the share of lookups without a round trip, and the names that the remote lost over the night."""
    every = [*day.known, *day.new]
    return {
        "lookups_at_zero_rtt": sum(map(at_zero_rtt, every)) / len(every),
        "restart_names_lost": len(day.known) - day.from_memory,
        "second_day_lookups_failed": sum(one.failed for one in every),
    }


def rows(first: Sequence[Lookup], day: Day) -> str:
    """Returns the table of lookups by kind."""
    lines = [["lookups", "number", "at no round trip", "failed", "stale"]]
    for name, every in (("first day", first), ("second day, known", day.known), ("second day, new", day.new)):
        stale = sum(one.addresses == [YESTERDAY] and one.ttl == STALE_TTL_S for one in every)
        counts = (len(every), sum(map(at_zero_rtt, every)), sum(one.failed for one in every), stale)
        lines.append([name, *map(str, counts)])
    return table(lines)
