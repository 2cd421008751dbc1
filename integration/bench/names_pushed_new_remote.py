"""A new remote at a ground that has learned, over a geostationary link: the first visit of each site by one client.

Three clients of one remote visit all sites first. Then new remotes take its place at the running ground, one after the
other. A visit is as in `names_pushed_days`.

A ground learns from lookups that reach it, and a remote responds to the second client of a name from its memory. So the
first new remote finds sites that one client taught. The second one finds sites that two clients taught, which are
learned sites. At the third one, the client needs no time for a page. It looks up the other names when it has the
response to the first one.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.names_pairs import pair_of_init
from bench.names_pushed_days import PAGE_S, Day, check, day_of, rows, several, share, site_visit
from bench.names_pushed_remotes import counts_of, renew, until_stream
from bench.names_queries import Lookup
from bench.names_second_day import LINK, QUICK_SITES, SITES, TODAY, resolving, visits_of
from harness.boxes.pair import Pair
from harness.lab.line import Line
from harness.lab.links import link
from harness.lab.quiet import wait_until_quiet
from harness.results.figures import at_least

TARGETS = [at_least("lookups_at_zero_rtt_learned_sites", 0.7)]


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Lets three clients teach, and then one client visit the sites at two new remotes."""
    sites = [visit.known for visit in visits_of(QUICK_SITES if quick else SITES)]
    origins = folder / "origins"
    origins.mkdir()
    with (
        Line(folder, LINK, seed=1) as line,
        several(line),
        pair_of_init(folder, line, link(LINK)) as both,
        resolving(line, origins, [name for names in sites for name in names], TODAY),
    ):
        until_stream(both)
        taught = day_of(line, both, sites)
        check(taught, TODAY)
        after_one = first_visits(line, both, sites)
        after_two = first_visits(line, both, sites)
        at_once = first_visits(line, both, sites, page_s=0)
    new = {"first new remote": after_one, "second new remote": after_two, "third new remote, at once": at_once}
    print(rows({"three clients of one remote": taught}), flush=True)
    for name, day in new.items():
        print(f"{name}: {share(day.every):.3f} at no round trip, {day.counts}", flush=True)
    return {
        "lookups_at_zero_rtt_learned_sites": share(after_two.every),
        "lookups_at_zero_rtt_learned_sites_at_once": share(at_once.every),
        "lookups_at_zero_rtt_taught_by_one_remote": share(after_one.every),
    }, {name: asdict(day.counts) for name, day in new.items()}


def first_visits(line: Line, both: Pair, sites: list[list[str]], page_s: float = PAGE_S) -> Day:
    """Replaces the remote by a new one, and visits each site once."""
    renew(both)
    assert line.link
    wait_until_quiet(line.link, link(LINK).rtt_ms)
    before = counts_of(both.remote)
    lookups: list[Lookup] = [one for names in sites for one in site_visit(line, names, page_s=page_s)]
    wrong = [one for one in lookups if one.addresses != [TODAY]]
    if wrong:
        raise RuntimeError(f"{len(wrong)} lookups have another response than the origin's: {wrong[0]}")
    return Day([lookups], counts_of(both.remote) - before)
