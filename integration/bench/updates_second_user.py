"""Users who load the same page over a ship's link, one after the other.

Each user has a new browser and an address of its own. Each round loads a page directly once, and by three users
through each box at the clients' end: Squid, a pair without the cache of its remote, and a pair with it. Squid and the
pairs start before their first user, and keep what they learn until their last one.

A pair reports a visit 15 s after the last bytes. All users come `BETWEEN_USERS_S` apart, so the report of a visit has
crossed the link before the next user comes.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from harness.lab.bed import LinkBed, standing
from harness.lab.contenders.base import LinkContender, LinkTrack
from harness.lab.contenders.direct import Direct
from harness.lab.contenders.squid import SquidBesideClients
from harness.lab.init_pair import pair_of_init
from harness.lab.line import NEAR_HOME
from harness.lab.links import link
from harness.lab.measure import Run
from harness.lab.measure import measure as load
from harness.lab.pages import Page, make_page
from harness.lab.tables import page_table
from harness.net.topology import CLIENT_DEVICE
from harness.results.figures import at_most, ratio, table

LINK, SCHEME = "maritime", "http"
PAGES = {"light": "cnn", "heavy": "median-2025"}
QUICK_PAGES = ["light"]
ROUNDS, QUICK_ROUNDS = 3, 1
LIMIT_S = 120
"""After this time, a page counts as broken."""
BETWEEN_USERS_S = 20
DIRECT, SQUID, NO_CACHE, CACHE = "direct", "squid", "pair-no-cache", "pair-cache"
USERS = ("first", "second", "third")
ADDRESSES = ("192.0.2.11", "192.0.2.12", "192.0.2.13")
"""The addresses of the users, in the network of the clients."""
TARGETS = [
    at_most("second_user_bytes", 0.05),
    at_most("second_user_light_kb", 3),
    at_most("second_user_heavy_kb", 40),
    at_most("second_user_heavy_s_vs_squid", 0.7),
    at_most("first_visit_light_vs_no_cache", 1.0),
    at_most("first_visit_heavy_vs_no_cache", 1.0),
]


class PairOfInit(LinkContender):
    """A pair with the files of `longhaul pair init`, which has seen nobody when it starts."""

    title = "Longhaul, pair of pair init"
    about = "Longhaul's pair with the files of `longhaul pair init`, the settings of `longhaul host`, and this cache."
    schemes = (SCHEME,)

    def __init__(self, name: str, cache: Callable[[Path], str]) -> None:
        """`cache` returns the section `cache` of the remote, whose folder is the argument."""
        self.name, self._cache = name, cache

    @contextmanager
    def started(self, track: LinkTrack) -> Iterator[None]:
        """Both boxes run and take the traffic."""
        home, near = track.folder_of(self.name), track.line.near
        shutil.rmtree(home)
        home.mkdir()
        # Connections of a load by another way may be known, and would go that way.
        near.forget_connections()
        cache = self._cache(home / "remote-cache")
        trusted = track.authority.files.cert
        with pair_of_init(home, track.line, track.link.setting, trusted=trusted, remote_cache=cache):
            yield
        near.forget_connections()

    def engaged(self, track: LinkTrack) -> AbstractContextManager[None]:  # noqa: ARG002 - it is, while it runs
        """Nothing is set."""
        return nullcontext()


def ways() -> list[LinkContender]:
    """Returns the contenders in the order of a round."""
    return [
        Direct(),
        SquidBesideClients(),
        PairOfInit(NO_CACHE, lambda _: "off"),
        PairOfInit(CACHE, lambda folder: f'{{ dir: "{folder}", size: 1gib }}'),
    ]


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Loads both pages in rounds. Returns the figures, and all loads."""
    sizes = QUICK_PAGES if quick else list(PAGES)
    pages = [make_page(page_table(PAGES[size])) for size in sizes]
    runs: list[Run] = []
    # Direct alone stands as long as the bed does. The others start for each round of a page.
    with standing(folder, link(LINK), pages, [Direct()], seed=1, weighed=False) as bed:
        for address in ADDRESSES:
            bed.track.line.clients.ip("address", "add", f"{address}/32", "dev", CLIENT_DEVICE)
        for number in range(QUICK_ROUNDS if quick else ROUNDS):
            for page in pages:
                for way in ways():
                    runs += visits(bed, page, way, number + 1)
    print(rows(runs), flush=True)
    for size in PAGES.keys() - sizes:
        print(f"no figure of the {size} page: a quick run does not load it", flush=True)
    return figures_of(runs, sizes), [{**run.as_dict(), "steps": []} for run in runs]


def visits(bed: LinkBed, page: Page, way: LinkContender, number: int) -> Iterator[Run]:
    """Lets the users visit a page by one way, which starts for them. Nobody remembers anything of a direct visit, so
    it has one user."""
    users = USERS[:1] if way.name == DIRECT else USERS
    with way.started(bed.track):
        for index, user in enumerate(users):
            if index:
                time.sleep(BETWEEN_USERS_S)
            yield visit(bed.track, page, way, (user, ADDRESSES[index]), number)


def visit(track: LinkTrack, page: Page, way: LinkContender, user: tuple[str, str], number: int) -> Run:
    """Loads a page in a new browser, from the address of a user."""
    name, address = user
    route = ["default", "via", NEAR_HOME, "dev", CLIENT_DEVICE, "src", address]
    track.line.clients.ip("route", "replace", *route)
    template = Run(name, LINK, page.name, SCHEME, way.name, number)
    (run,) = load(track, page, way, template, warm=False, timeout_s=LIMIT_S)
    told = f"{run.load_ms:.0f} ms, {run.bytes_down / 1000:.1f} kB" if run.complete else run.problem
    print(f"{page.name}, {way.name}, {name} user, round {number}: {told}", flush=True)
    return run


def chosen(runs: list[Run], page: str, way: str, user: str) -> list[Run]:
    """Returns the loads of a page by the same user and way, in the order of the rounds."""
    return [run for run in runs if (run.page, run.contender, run.experiment) == (page, way, user)]


def figures_of(runs: list[Run], sizes: Sequence[str]) -> dict[str, float | None]:
    """Returns the bytes of the second and the third user, and the ratios of times, round by round."""
    figures: dict[str, float | None] = {}
    for size in sizes:
        page = PAGES[size]
        for user in USERS[1:]:
            figures[f"{user}_user_{size}_kb"] = kilobytes(chosen(runs, page, CACHE, user))
        for figure, user, other in (
            (f"second_user_{size}_s_vs_squid", "second", SQUID),
            (f"first_visit_{size}_vs_no_cache", "first", NO_CACHE),
        ):
            figures[figure] = beside(chosen(runs, page, CACHE, user), chosen(runs, page, other, user))
    parts = [of_first(runs, PAGES[size]) for size in sizes]
    figures["second_user_bytes"] = None if None in parts else max(part for part in parts if part is not None)
    return figures


def of_first(runs: list[Run], page: str) -> float | None:
    """Returns the bytes of the second user as a part of the first one's, or None unless every load was whole."""
    first, second = (kilobytes(chosen(runs, page, CACHE, user)) for user in USERS[:2])
    return None if first is None or second is None else second / first


def kilobytes(runs: list[Run]) -> float | None:
    """Returns the median of what the link delivered to the clients' end, or None unless every load was whole."""
    return statistics.median(run.bytes_down for run in runs) / 1000 if all(run.complete for run in runs) else None


def beside(ours: list[Run], theirs: list[Run]) -> float | None:
    """Returns the ratio of load times of the rounds in which both loads were whole, or None if there is no such one."""
    both = [pair for pair in zip(ours, theirs, strict=True) if all(run.complete for run in pair)]
    return ratio([one.load_ms for one, _ in both], [other.load_ms for _, other in both]) if both else None


def rows(runs: list[Run]) -> str:
    """Returns the table of medians."""
    lines = [["medians", "user", "s", "lowest", "highest", "kB down", "kB up", "TCP over the link", "not whole"]]
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.page, run.contender, run.experiment), []).append(run)
    for (page, way, user), every in groups.items():
        whole = [run for run in every if run.complete]
        lines.append([f"{page}, {way}", user, *cells(whole), str(len(every) - len(whole))])
    return table(lines)


def cells(whole: list[Run]) -> list[str]:
    """Returns the cells of a row of whole loads."""
    if not whole:
        return ["-"] * 6
    times = [run.load_ms / 1000 for run in whole]
    down, up, connections = (
        statistics.median(getattr(run, name) for run in whole) for name in ("bytes_down", "bytes_up", "connections")
    )
    seconds = [f"{value:.2f}" for value in (statistics.median(times), min(times), max(times))]
    return [*seconds, f"{down / 1000:.1f}", f"{up / 1000:.1f}", f"{connections:.0f}"]
