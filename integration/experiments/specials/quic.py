"""HTTP/3 of origins: it bypasses the pair, or the pair refuses it so that browsers use TCP (`split.udp443`).

A browser that has visited the origin before knows from Alt-Svc that it supports HTTP/3. Nothing else of that visit
remains: its connections are closed and its cache is empty. The browser's next visit is timed.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.browsers.chromium import Browser, Load, browser
from harness.host.waiting import wait_for
from harness.lab.bed import LinkBed, standing
from harness.lab.contenders import contender
from harness.lab.contenders.base import rules
from harness.lab.ideal import timeout_s
from harness.lab.line import NEAR_DEVICE
from harness.lab.pages import Page, make_page
from harness.lab.tables import page_table
from harness.net.namespaces import Namespace

from ..plan import Group

PAIR = "longhaul-pair-unlisted"
WAYS = ("direct", "pass", "refuse")
"""No pair, or a pair with this value of `split.udp443`."""
REFUSED = f"""chain quic {{
    type filter hook forward priority filter; policy accept;
    iifname "{NEAR_DEVICE}" udp dport 443 reject
}}"""
"""The rules that `longhaul host` prints for `udp443: refuse`."""
IDLE_S = 60.0
"""Longer than a browser's QUIC connection lives without a request."""


def quic(folder: Path, group: Group, seed: int) -> dict[str, Any]:
    """Returns load times of a page whose origins announced HTTP/3, by the treatment of UDP port 443."""
    pages = [make_page(page_table(name)) for name in group.pages]
    found: dict[tuple[str, str], list[Load]] = {}
    problems: dict[tuple[str, str], list[str]] = {}
    everybody = [contender(name) for name in ("direct", PAIR)]
    with standing(folder, group.link, pages, everybody, seed=seed, weighed=False, http3=True) as bed:
        for _ in range(group.repeats):
            for page in pages:
                for way in WAYS:
                    load = _next_visit(bed, page, way, timeout_s(page.name, group.link))
                    found.setdefault((page.name, way), []).append(load)
                    short = len(page.urls("https")) - len(load.loaded())
                    if short > 0:
                        problems.setdefault((page.name, way), []).append(f"{short} objects are missing")
    rows = [_row(page, way, loads, problems.get((page, way), [])) for (page, way), loads in found.items()]
    figures = {
        f"{row['page'].replace('-', '_')}_{row['way']}_{what}": row[what]
        for row in rows
        for what in ("load_ms", "over_http3", "failures")
    }
    return {"figures": figures, "rows": rows}


def _row(page: str, way: str, loads: list[Load], problems: list[str]) -> dict[str, Any]:
    requests = [one for load in loads for one in load.requests if one.loaded]
    return {
        "page": page, "way": way, "problems": problems, "failures": len(problems),
        "load_ms": round(statistics.median(load.load_ms for load in loads)),
        "over_http3": round(sum(one.protocol == "h3" for one in requests) / max(len(requests), 1), 3),
    }  # fmt: skip


def _next_visit(bed: LinkBed, page: Page, way: str, timeout: float) -> Load:
    track = bed.track
    clients = track.line.clients
    # With this flag a browser accepts a local authority's certificate over QUIC. No request uses port 444, so only the
    # announcement can lead to QUIC.
    trusted = "--origin-to-force-quic-on=" + ",".join(f"{host}:444" for host in track.hosts)
    with _engaged(bed, way), browser(track.folder, clients, track.authority, flags=(trusted,)) as known:
        known.load(page.url("https"), timeout_s=timeout)
        _leave_nothing_but_knowledge(known, clients)
        return known.load(page.url("https"), timeout_s=timeout)


@contextmanager
def _engaged(bed: LinkBed, way: str) -> Iterator[None]:
    track = bed.track
    with bed.contenders["direct" if way == "direct" else PAIR].engaged(track):
        if way != "refuse":
            yield
            return
        with rules(track.line.near, REFUSED, table="quic"):
            yield


def _leave_nothing_but_knowledge(known: Browser, clients: Namespace) -> None:
    known.forget_objects()
    clients.run("ss", "--tcp", "--kill", "dport", "=", ":443")

    def nothing_is_open() -> bool:
        standing = ("--udp", "--tcp", "--no-header", "state", "established")
        return not clients.run("ss", *standing, "dport", "=", ":443").stdout

    wait_for("connections of the visit before to end", nothing_is_open, timeout_s=IDLE_S, interval_s=0.2)
