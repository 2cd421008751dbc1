"""Pages whose names share a certificate, a server, both or neither, in two browsers by a pair with `dns.instant: on`.

The pages are those of `names_coalescing`. Each has new names, so each lookup is a first one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.names_beds import LINK, Clients, Way, site_of
from bench.names_coalescing import HTTP2, LIMIT_S, LOADS, QUICK_LOADS, Loaded, broken, loads, rows
from harness.browsers.firefox import Firefox, firefox
from harness.lab.instant import instant_bed
from harness.net.topology import SITES
from harness.origins.shared_certificates import SharedPage, shared_pages
from harness.results.figures import at_least, at_most

TARGETS = [at_most("pages_broken", 0), at_least("pages_instant", 0.95)]


@contextmanager
def pair_instant(folder: Path, pages: Sequence[SharedPage]) -> Iterator[Clients]:
    """A pair without a list."""
    with instant_bed(folder, LINK, site=site_of(folder, pages)) as bed:
        yield Clients(bed.line.clients, bed.authority)


WAY = Way("pair, instant", "", pair_instant)


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Loads every page in both browsers. Returns the broken ones, and the part of pages that came from an instant
    address."""
    pages = shared_pages(QUICK_LOADS if quick else LOADS)
    found: dict[str, list[Loaded]] = {}
    for name, every in (("Chromium", loads), ("Firefox", in_firefox)):
        (home := folder / name).mkdir()
        found[name] = every(WAY, home, pages)
    print(rows(found), flush=True)
    return {
        "pages_broken": sum(map(broken, found.values())),
        **{f"pages_broken_{name.lower()}": broken(each) for name, each in found.items()},
        "pages_instant": min(sum(one.boxed for one in each) / len(each) for each in found.values()),
    }, {"loads": {name: [asdict(one) for one in each] for name, each in found.items()}}


def in_firefox(way: Way, folder: Path, pages: Sequence[SharedPage]) -> list[Loaded]:
    """Loads the pages in one Firefox. No page has a name of another one, so none finds a connection or an address."""
    with (
        way.started(folder, pages) as clients,
        firefox(folder, clients.namespace, clients.authority) as started,
    ):
        return [load(started, page) for page in pages]


def load(started: Firefox, page: SharedPage) -> Loaded:
    """Loads a page, and compares it with what a whole one has."""
    error, requests = started.load(page.urls[0], timeout_s=LIMIT_S)
    of_page = [one for one in requests if one.url in page.urls]
    other = {one.protocol for one in of_page if one.status} - {HTTP2}
    if other:
        raise RuntimeError(f"{page.urls[0]}: {other} instead of {HTTP2}")
    problems = [*([error] if error else []), *page.problems(of_page)]
    remotes = [one.remote.rpartition(":")[0] for one in of_page if one.url == page.urls[0] and one.status]
    boxed = any(ipaddress.ip_address(one) not in SITES for one in remotes)
    return Loaded(page.kind.name, page.order, "; ".join(problems), boxed)
