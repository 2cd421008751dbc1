"""Differences between pages on a pair: pages that break an encoder, and bases of pages that are private."""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from harness.boxes import Boxes

from .bed import Reply, all_at_once, get, standing
from .figure import Figure, wrong
from .files import path_of
from .origin import WEB

PAIRS, QUICK_PAIRS = 2500, 400
"""One of some two hundred pairs broke the encoder of 848f808."""
SITES = 60
"""Pages of one site may become the base of one another, so there are many sites."""
PAGE = ("Accept: text/html,*/*;q=0.8", "Accept-Encoding: gzip, deflate", "User-Agent: b")
SETTINGS = {"page": {"delta": "on", "bundle": True}}
NAMES = {f"{host}.site{n}.test": WEB for n in range(SITES) for host in ("www", "mail")}


def delta_panics(quick: bool) -> Figure:
    """Panics of a filter, and requests of others that died, while one client loads made pairs of pages."""
    count = QUICK_PAIRS if quick else PAIRS
    with standing("pair", names=NAMES, **SETTINGS) as box, _other_client(box) as others:
        broken = all_at_once(lambda number: _load(box, number), range(count), 8)
        differences = _deltas(box)
        panics = sum(len(re.findall(r"panicked at", pep.output())) for pep, _ in box.peps)
        died = [line for line in others if line]
    if not differences:
        raise RuntimeError("no page crossed as a difference, so the figure would say nothing")
    detail = [f"{panics} panics in {differences:g} differences", f"{sum(broken)} of {2 * count} own pages cut", f"{len(died)} of {len(others)} others"]
    return Figure(panics + len(died), count, detail if panics or died else [])


def _load(box: Boxes, number: int) -> int:
    """Loads a base and a page. Returns how many of them were not whole."""
    host = f"www.site{number % SITES}.test"
    replies = [
        get(box, path_of(kind=kind, type="text/html", key=str(number), cache="max-age=0", pieces=1), *PAGE, host=host) for kind in ("base", "form")
    ]
    return sum(one.status != 200 or bool(one.problem) for one in replies)


@contextmanager
def _other_client(box: Boxes) -> Iterator[list[str]]:
    """Sends small requests all the time. The list gets their problems, or nothing for each that went well."""
    outcomes: list[str] = []
    end = threading.Event()

    def run() -> None:
        for number in itertools.count():
            if end.is_set():
                return
            reply = get(box, path_of(kind="noise", type="image/png", key=f"other-{number}"))
            outcomes.append("" if (reply.status, reply.problem) == (200, "") else f"{reply.status} {reply.problem}")
            time.sleep(0.02)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield outcomes
    finally:
        end.set()
        thread.join(40.0)


PRIVATE = {
    "a request with Cookie": (["Cookie: s=1"], [], "www"),
    "a request with Authorization": (["Authorization: Basic YTpi"], [], "www"),
    "a response with private": ([], ["cache-control: private"], "www"),
    "a response with no-store": ([], ["cache-control: no-store"], "www"),
    "a response with Set-Cookie": ([], ["set-cookie: s=1"], "www"),
    "a sibling's page, response with private": ([], ["cache-control: private"], "mail"),
    "a sibling's page, response with no-store": ([], ["cache-control: no-store", "set-cookie: s=1"], "mail"),
    "a sibling's page, request with Cookie": (["Cookie: s=1"], [], "mail"),
}
"""Each case: fields of the request, fields of the response, and the host of the page that somebody else wrote."""


def private_bases(quick: bool) -> Figure:  # noqa: ARG001 - it takes seconds
    """Cases in which a private page crosses as a difference from a page that somebody else wrote, or is the base."""
    cases = []
    with standing("pair", names=NAMES, **SETTINGS) as box:
        if not _difference(box, 0, ("www", [], []), ("www", [], [])):
            raise RuntimeError("no public page crossed as a difference, so the figure would say nothing")
        for site, (name, (asked, answered, host)) in enumerate(PRIVATE.items(), start=1):
            public, private = (host, [], []), ("www", asked, answered)
            for order, (first, second) in {"page": (public, private), "base": (private, public)}.items():
                used = _difference(box, 2 * site + (order == "base"), first, second)
                cases.append((f"{name}, private {order}", "a difference crossed" if used else ""))
    return wrong(cases)


Load = tuple[str, list[str], list[str]]


def _difference(box: Boxes, site: int, first: Load, second: Load) -> bool:
    """Loads two pages that have most of their text in common. Returns whether the second was a difference."""
    counted = 0.0
    for number, (host, asked, answered) in enumerate((first, second)):
        counted = _deltas(box)
        path = path_of(
            kind="article", type="text/html", key=f"{site}-{number}", cache="max-age=0", field=answered
        )  # fmt: skip
        reply: Reply = get(box, path, *PAGE, *asked, host=f"{host}.site{site}.test")
        if reply.status != 200 or reply.problem:
            raise RuntimeError(f"{reply.status} {reply.problem}")
    return _deltas(box) > counted


def _deltas(box: Boxes) -> float:
    pep, admin = box.peps[0]
    return sum(value for name, value in pep.metrics(admin).items() if name.startswith("longhaul_bundling_deltas_total"))
