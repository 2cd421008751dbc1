"""Pages that break because a browser sends requests of two names over one connection (coalescing)."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.names_beds import WAYS, Way
from harness.browsers.chromium import Browser, browser, requests_of
from harness.browsers.cookies import allow_third_party_cookies
from harness.host.waiting import Timeout
from harness.net.topology import SITES
from harness.origins.shared_certificates import KINDS, ORDERS, SharedPage, shared_pages
from harness.results.figures import at_most, table

TARGETS = [at_most(f"coalesced_pages_broken{suffix}", 0) for suffix in ("", "_range", "_pair")]
LOADS, QUICK_LOADS = 204, 24
"""Loads of each way: as many of each kind of site in each order."""
LIMIT_S = 20
"""After this time, a page counts as broken."""
SETTLE_S = 0.1
HTTP2 = "h2"


@dataclass(frozen=True)
class Loaded:
    """One load of a page."""

    kind: str
    order: str
    problem: str
    """Empty if the page is whole."""
    boxed: bool
    """True if the page itself came from an address of the box. The images may have come from another one."""


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Loads every page by every way. Returns the broken pages of each, and the details."""
    pages = shared_pages(QUICK_LOADS if quick else LOADS)
    found: dict[str, list[Loaded]] = {}
    for number, way in enumerate(WAYS):
        (home := folder / str(number)).mkdir()
        found[way.name] = loads(way, home, pages)
    print(rows(found), flush=True)
    figures: dict[str, float | None] = {f"coalesced_pages_broken{way.suffix}": broken(found[way.name]) for way in WAYS}
    details = {name: [asdict(one) for one in every] for name, every in found.items()}
    return figures, {"loads": len(pages), "ways": details}


def loads(way: Way, folder: Path, pages: Sequence[SharedPage]) -> list[Loaded]:
    """Loads the pages by one way."""
    with (
        way.started(folder, pages) as clients,
        browser(folder, clients.namespace, clients.authority) as chromium,
    ):
        allow_third_party_cookies(chromium)
        return [load(chromium, page) for page in pages]


def load(chromium: Browser, page: SharedPage) -> Loaded:
    """Loads a page as a browser without any connection, cached object or resolved name does."""
    problems = []
    with chromium.tab(isolated=True) as tab:
        try:
            tab.navigate(page.urls[0], timeout_s=LIMIT_S, settle_s=SETTLE_S)
        except Timeout as reason:
            problems.append(str(reason))
        requests = list(requests_of(tab.events()))
    other = {one.protocol for one in requests if one.status} - {HTTP2}
    if other:
        raise RuntimeError(f"{page.urls[0]}: {other} instead of {HTTP2}")
    problems += page.problems(requests)
    remotes = [one.remote.rpartition(":")[0] for one in requests if one.url == page.urls[0] and one.remote]
    boxed = any(ipaddress.ip_address(one) not in SITES for one in remotes)
    return Loaded(page.kind.name, page.order, "; ".join(problems), boxed)


def broken(every: Sequence[Loaded]) -> int:
    """Counts the pages that are not whole."""
    return sum(bool(one.problem) for one in every)


def rows(found: dict[str, list[Loaded]]) -> str:
    """Returns the table of broken pages by kind and order, with a column for each way."""
    lines = [["broken pages of all", *found]]
    for kind in KINDS:
        for order in ORDERS:
            those = [[one for one in every if (one.kind, one.order) == (kind.name, order)] for every in found.values()]
            lines.append([f"({kind.name}) {kind.about}; {order}", *(f"{broken(one)}/{len(one)}" for one in those)])
    lines.append(["all", *(f"{broken(every)}/{len(every)}" for every in found.values())])
    boxed = (sum(one.boxed for one in every) for every in found.values())
    lines.append(["pages from an address of the box", *map(str, boxed)])
    return table(lines)
