"""A page over https on a geostationary link by a new remote, at a ground that knows the names of the page.

Three new remotes visit the page and teach the ground. Each round then loads the page directly and by two new remotes.
At the first one, the load begins before the ground sends popular names, so that it sends followers alone. At the
second one, popular names are there before the load. Both boxes start for each load. The state of the ground stays, and
that of the remote does not. Each page has a ground of its own, which knows no other page.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.names_first_visit import LIMIT_S, LINK, PAGES, QUICK_PAGES, SCHEME, check_way
from bench.names_pushed_remotes import Counts, counts_of, until_pushed, until_stream
from harness.lab.bed import LinkBed, standing
from harness.lab.contenders.base import LinkContender, LinkTrack
from harness.lab.contenders.direct import Direct
from harness.lab.init_pair import pair_of_init
from harness.lab.links import link
from harness.lab.measure import Run
from harness.lab.measure import measure as load
from harness.lab.pages import Page, make_page
from harness.lab.tables import page_table
from harness.results.figures import at_least, at_most, ratio, table

TARGETS = [
    at_most("learned_light", 0.50),
    at_most("learned_heavy", 0.42),
    at_most("pushed_unused_bytes", 0.02),
    at_least("lookups_at_zero_rtt_learned", 0.7),
]
TEACHERS = 3
"""The clients that make a name popular."""
ROUNDS, QUICK_ROUNDS = 3, 1
DIRECT, FOLLOWERS, LEARNED, TEACHING = "direct", "followers", "learned", "teaching"


@dataclass
class NewRemote(LinkContender):
    """A pair with a new remote, which runs during a load alone."""

    name: str
    page: str
    """Each page has a ground of its own."""
    names: int
    """The hosts of the page."""
    title: str = "Longhaul, new remote"
    about: str = "Longhaul's pair with the files of `longhaul pair init`, a new remote, and a ground that stays."
    counts: Counts = field(default_factory=Counts)
    """The counters of the remote after the last load."""

    @contextmanager
    def started(self, track: LinkTrack) -> Iterator[None]:  # noqa: ARG002 - each load starts its own
        """Nothing runs between loads."""
        yield

    @contextmanager
    def engaged(self, track: LinkTrack) -> Iterator[None]:
        """Both boxes start and take the traffic. The remote knows nothing."""
        home = track.folder_of(f"learned-{self.page}")
        near = track.line.near
        shutil.rmtree(home / "remote", ignore_errors=True)
        # Connections of a load by another way may be known, and would go that way.
        near.forget_connections()
        with pair_of_init(home, track.line, track.link.setting, trusted=track.authority.files.cert) as both:
            until_stream(both)
            if self.name == LEARNED:
                until_pushed(both, self.names)
            yield
            self.counts = counts_of(both.remote)
        near.forget_connections()


@dataclass(frozen=True)
class Visit:
    """A load, and what the remote counted."""

    run: Run
    counts: Counts

    @property
    def unused(self) -> float:
        """The bytes of names that no client requested, as a part of all bytes of the load."""
        return (self.counts.pushed_bytes - self.counts.used_bytes) / self.run.bytes_down


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Loads both pages in rounds. Returns the figures, and all loads."""
    sizes = QUICK_PAGES if quick else list(PAGES)
    pages = [make_page(page_table(PAGES[size])) for size in sizes]
    visits: list[Visit] = []
    with standing(folder, link(LINK), pages, [Direct()], seed=1, weighed=False) as bed:
        for page in pages:
            visits += [visit(bed, page, TEACHING, number) for number in range(TEACHERS)]
            for number in range(QUICK_ROUNDS if quick else ROUNDS):
                visits += [visit(bed, page, way, number) for way in (DIRECT, FOLLOWERS, LEARNED)]
    print(rows(visits), flush=True)
    for size in PAGES.keys() - sizes:
        print(f"no figure of the {size} page: a quick run does not load it", flush=True)
    return figures_of(visits), [{**one.run.as_dict(), "steps": [], "counts": asdict(one.counts)} for one in visits]


def visit(bed: LinkBed, page: Page, name: str, number: int) -> Visit:
    """Loads a page by one way, in a new browser. Raises if the remote was not what the way says."""
    way = Direct() if name == DIRECT else NewRemote(name, page.name, len(page.hosts))
    template = Run("names-pushed", LINK, page.name, SCHEME, name, number + 1)
    (run,) = load(bed.track, page, way, template, warm=False, timeout_s=LIMIT_S)
    check_way(run, len(page.hosts))
    one = Visit(run, way.counts if isinstance(way, NewRemote) else Counts())
    told = f"{run.load_ms:.0f} ms" if run.complete else run.problem
    print(f"{page.name}, {name}, round {run.repeat}: {told}, {one.counts}", flush=True)
    if name in (FOLLOWERS, TEACHING) and not one.counts.over_link:
        # The ground waits for ten seconds without a lookup, so only a slow start of the load can be the reason.
        raise RuntimeError("popular names were sent to a remote that visits at once")
    return one


def figures_of(visits: list[Visit]) -> dict[str, float | None]:
    """Returns the ratios to the direct loads, round by round, and what was sent for nothing."""
    figures: dict[str, float | None] = {}
    for way in (LEARNED, FOLLOWERS):
        for size, page in PAGES.items():
            pairs = whole_rounds([one.run for one in visits if one.run.page == page], way)
            figures[f"{way}_{size}"] = ratio(*pairs) if pairs else None
            if not pairs:
                print(f"{way}_{size}: no round has two whole loads", flush=True)
    learned = [one for one in visits if one.run.contender == LEARNED and one.run.complete]
    followers = [one for one in visits if one.run.contender == FOLLOWERS and one.run.complete]
    figures["pushed_unused_bytes"] = max((one.unused for one in [*learned, *followers]), default=None)
    figures["lookups_at_zero_rtt_learned"] = min((one.counts.at_zero_rtt for one in learned), default=None)
    figures["lookups_at_zero_rtt_followers"] = min((one.counts.at_zero_rtt for one in followers), default=None)
    return figures


def whole_rounds(runs: list[Run], way: str) -> tuple[list[float], list[float]] | None:
    """Returns the load times by a way and the direct ones, of the rounds in which both loads are whole."""
    times = {(run.contender, run.repeat): run.load_ms for run in runs if run.complete}
    both = [number for name, number in times if name == way and (DIRECT, number) in times]
    if not both:
        return None
    return [times[way, number] for number in both], [times[DIRECT, number] for number in both]


def rows(visits: list[Visit]) -> str:
    """Returns the table of medians."""
    lines = [["medians", "ms", "lowest", "highest", "kB down", "lookups at no round trip", "names sent", "unused"]]
    for page, way in dict.fromkeys((one.run.page, one.run.contender) for one in visits):
        whole = [one for one in visits if (one.run.page, one.run.contender) == (page, way) and one.run.complete]
        if not whole:
            lines.append([f"{page}, {way}", *["-"] * 7])
            continue
        times = [one.run.load_ms for one in whole]
        cells = [f"{value:.0f}" for value in (statistics.median(times), min(times), max(times))]
        cells.append(f"{statistics.median(one.run.bytes_down for one in whole) / 1000:.0f}")
        cells.append("-" if way == DIRECT else f"{statistics.median(one.counts.at_zero_rtt for one in whole):.2f}")
        cells.append(f"{statistics.median(one.counts.pushed for one in whole):g}")
        cells.append(f"{statistics.median(one.unused for one in whole):.4f}")
        lines.append([f"{page}, {way}", *cells])
    return table(lines)
