"""A new remote at a ground that has learned, over a geostationary link: the first visit of each site.

Clients of one remote visit all sites first, three of them each site. Then new remotes take its place at the running
ground, one after the other, and one client visits each site. A visit is as in `names_pushed_days`. The next visit is by
the next one of ten clients, so that two visits of one client are more than ten seconds apart. Otherwise the names of
one site would follow those of another one.

A ground learns from lookups that reach it, and a remote responds to the second client of a name from its memory. So the
first new remote finds sites that one client taught. The second one finds sites that two clients taught, which are
learned sites. At the third one, the client needs no time for a page. It looks up the other names when it has the
response to the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.names_pushed_days import PAGE_S, Day, several, share, site_visit
from bench.names_pushed_remotes import Counts, counts_of, renew, until_stream
from bench.names_queries import Lookup
from bench.names_second_day import LINK, QUICK_SITES, SITES, TODAY, resolving, visits_of
from harness.boxes.pair import Pair
from harness.lab.init_pair import pair_of_init
from harness.lab.line import Line
from harness.lab.links import link
from harness.lab.quiet import wait_until_quiet
from harness.results.figures import at_least, table

TARGETS = [at_least("lookups_at_zero_rtt_learned_sites", 0.7)]
CLIENTS = [f"192.0.2.{number}" for number in range(2, 12)]
TAUGHT_BY = 3
"""The clients that visit each site at the first remote."""


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Lets clients of one remote teach, and then visits the sites at three new remotes."""
    sites = [visit.known for visit in visits_of(QUICK_SITES if quick else SITES)]
    origins = folder / "origins"
    origins.mkdir()
    with (
        Line(folder, LINK, seed=1) as line,
        several(line, CLIENTS),
        pair_of_init(folder, line, link(LINK).setting) as both,
        resolving(line, origins, [name for names in sites for name in names], TODAY),
    ):
        until_stream(both)
        taught = [visits(line, both, sites, first=number) for number in range(TAUGHT_BY)]
        after_one = new_remote(line, both, sites)
        after_two = new_remote(line, both, sites)
        at_once = new_remote(line, both, sites, page_s=0)
    new = {"first new remote": after_one, "second new remote": after_two, "third new remote, at once": at_once}
    print(rows({f"client {number + 1} of a site": day for number, day in enumerate(taught)} | new), flush=True)
    return {
        "lookups_at_zero_rtt_learned_sites": share(after_two.every),
        "lookups_at_zero_rtt_learned_sites_at_once": share(at_once.every),
        "lookups_at_zero_rtt_taught_by_one_remote": share(after_one.every),
    }, {name: asdict(day.counts) for name, day in new.items()}


def new_remote(line: Line, both: Pair, sites: Sequence[Sequence[str]], page_s: float = PAGE_S) -> Day:
    """Replaces the remote by a new one, and visits each site once."""
    renew(both)
    assert line.link
    wait_until_quiet(line.link, link(LINK).rtt_ms)
    return visits(line, both, sites, page_s=page_s)


def visits(line: Line, both: Pair, sites: Sequence[Sequence[str]], *, first: int = 0, page_s: float = PAGE_S) -> Day:
    """Visits each site once, by one client after the other. Raises if a response is not the origin's."""
    before = counts_of(both.remote)
    lookups: list[Lookup] = []
    for number, names in enumerate(sites):
        lookups += site_visit(line, names, CLIENTS[(first + number) % len(CLIENTS)], page_s)
    wrong = [one for one in lookups if one.addresses != [TODAY]]
    if wrong:
        raise RuntimeError(f"{len(wrong)} lookups have another response than the origin's: {wrong[0]}")
    return Day([lookups], counts_of(both.remote) - before)


def rows(days: dict[str, Day]) -> str:
    """Returns the table of visits, with the counters of the remote beside them."""
    lines = [["visits", "lookups", "at no round trip", *vars(Counts()).keys()]]
    for name, day in days.items():
        lines.append([name, str(len(day.every)), f"{share(day.every):.3f}", *map(str, vars(day.counts).values())])
    return table(lines)
