"""The first visit of a host without TLS. Browsers try https first, and some repeat a connection that only ends."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.names_beds import served
from harness.boxes.bed import Bed
from harness.browsers.chromium import browser
from harness.lab.boxes import Boxes, no_box, pair_of_boxes
from harness.net.authority import Authority
from harness.net.namespaces import Namespace
from harness.net.topology import RESOLVER
from harness.origins.program import Site
from harness.results.figures import at_most, table

TARGETS = [at_most("http_only_added_s", 0.7), at_most("http_only_added_pair_s", 0.1)]
LINK = "geo"
LOADS, QUICK_LOADS = 5, 3
LIMIT_S = 20
ADDRESS = "203.0.113.77"
NAMES = [f"n{number}.plain-longhaul.net" for number in range(LOADS)]
"""Chromium tries https first for names that it takes for public ones. Each is visited once."""


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Visits every name directly, by an edge and by a pair."""
    names = NAMES[:QUICK_LOADS] if quick else NAMES
    seconds = dict(visits(folder, names))
    median = {way: statistics.median(each) for way, each in seconds.items()}
    lines = [["a first visit, s", *seconds], ["median", *(f"{one:.2f}" for one in median.values())]]
    print(table(lines), flush=True)
    figures: dict[str, float | None] = {
        "http_only_added_s": median["edge"] - median["edge, bypassed"],
        "http_only_added_pair_s": median["pair"] - median["direct"],
    }
    return figures, seconds


def visits(folder: Path, names: list[str]) -> Iterator[tuple[str, list[float]]]:
    """Yields the seconds of the visits by each way."""
    authority = Authority(folder)
    site = site_of(authority, names)
    site.dns = [f"{RESOLVER}:53"]
    with Bed(folder, site, ["unused.example"], authority, link_profile=LINK) as bed:
        yield "edge", [visit(folder, bed.topology.clients, authority, name) for name in names]
        with bed.without_longhaul():
            yield "edge, bypassed", [visit(folder, bed.topology.clients, authority, name) for name in names]
    addresses = dict.fromkeys(names, ADDRESS)
    (at_pair := folder / "pair").mkdir()
    with (
        pair_of_boxes(at_pair, addresses, [], profile=LINK) as boxes,
        served(boxes, at_pair, site_of(boxes.authority, names)),
    ):
        yield "pair", [visit_by(boxes, name) for name in names]
    (at_none := folder / "none").mkdir()
    with no_box(at_none, addresses, profile=LINK) as boxes, served(boxes, at_none, site_of(boxes.authority, names)):
        yield "direct", [visit_by(boxes, name) for name in names]


def site_of(authority: Authority, names: list[str]) -> Site:
    """Returns hosts that serve http alone."""
    site = Site(ca=authority.files.as_dict())
    for name in names:
        site.hosts[name] = {"address": ADDRESS, "generate": True}
    return site


def visit_by(boxes: Boxes, name: str) -> float:
    """Visits a name by the boxes of a lab."""
    return visit(boxes.folder, boxes.clients, boxes.authority, name)


def visit(folder: Path, clients: Namespace, authority: Authority, name: str) -> float:
    """Types a name into a new browser. Returns the seconds until its page is there."""
    with browser(folder, clients, authority, as_shipped=True) as chromium, chromium.tab() as tab:
        began_s = time.monotonic()
        tab.navigate(f"http://{name}/page.html", timeout_s=LIMIT_S, settle_s=0)
        return time.monotonic() - began_s
