"""Loads on a bed of neighbours: a page alone or beside bulk of another client, users with pauses, and an outage."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from harness.browsers.chromium import browser
from harness.net.link import Link

from .neighbours import BULK, CLIENTS, SERVERS, NeighbourBed, light_page

BULK_S = 600
"""Longer than any page takes."""
HEAD_START_S = 8
"""The time for which bulk runs alone."""
THINK_S = 15
"""The mean of the pauses of a user."""
LOOK_S = 5
"""The pause of a user in a browser, of whom a run wants more pages."""
BEFORE_S, AFTER_S = 5, 40
"""The time of requests before an outage, and after it."""
EVERY_S = 0.5
PATIENCE_S = 60


@dataclass(frozen=True)
class PageLoad:
    """One page."""

    seconds: float
    whole: bool


def page(bed: NeighbourBed, fresh: str, *, tls: bool) -> PageLoad:
    """Loads a page that `fresh` makes new."""
    [done] = bed.load({"do": "page", "from": CLIENTS[0], "tls": tls} | light_page(fresh))
    return PageLoad(done["seconds"], done["whole"])


@contextmanager
def beside(bed: NeighbourBed, streams: int, *, tls: bool, upload: bool = False, others: int = 1) -> Iterator[None]:
    """So many downloads or uploads of each of some other clients, which have a head start."""
    bulk: dict[str, Any] = {"do": "bulk", "host": BULK, "to": SERVERS[BULK], "seconds": BULK_S, "streams": streams}
    jobs = [bulk | {"from": address, "tls": tls, "upload": upload} for address in CLIENTS[1 : others + 1]]
    clients = bed.start(*jobs)
    try:
        time.sleep(HEAD_START_S)
        yield
    finally:
        clients.terminate()
        clients.wait()


@dataclass(frozen=True)
class Crowd:
    """The pages of users, and the packets that the link dropped."""

    seconds: list[float]
    """Of all pages."""
    dropped: int
    """Packets that the queues of the link dropped."""
    cut: int
    """Users with a page that was not whole."""

    @property
    def p95(self) -> float:
        """The page that only one in twenty exceeds."""
        return statistics.quantiles(self.seconds, n=20)[-1]


def crowd(bed: NeighbourBed, name: str, users: int, seconds: float, *, tls: bool) -> Crowd:
    """Lets users load pages with pauses. `name` makes their URLs new."""
    assert bed.line.link
    bed.line.link.reset()
    results = bed.load(*_users(name, users, seconds, tls=tls))
    return Crowd(
        [second for one in results for second in one["seconds"]],
        _dropped(bed.line.link),
        sum(not one["whole"] for one in results),
    )


def browsing(bed: NeighbourBed, name: str, users: int, seconds: float, *, tls: bool) -> Crowd:
    """Lets a user load pages in Chromium, beside others with light clients. Returns the pages of the browser, each of
    which looks up its names and opens its connections."""
    url = f"{'https' if tls else 'http'}://{next(iter(SERVERS))}/page/{name}-"
    assert bed.line.link
    bed.line.link.reset()
    until = time.monotonic() + seconds
    others = bed.start(*_users(name, users, seconds, tls=tls)[1:])
    loads = []
    with browser(bed.folder, bed.line.clients, bed.authority) as own:
        while time.monotonic() < until:
            loads.append(own.load(f"{url}{len(loads)}", isolated=True))
            time.sleep(LOOK_S)
    bed.finish(others)
    whole = [one for one in loads if one.load_ms and not one.failed()]
    return Crowd([one.load_ms / 1000 for one in whole], _dropped(bed.line.link), len(loads) - len(whole))


def _users(name: str, users: int, seconds: float, *, tls: bool) -> list[dict[str, Any]]:
    common = light_page("FRESH") | {"do": "user", "tls": tls, "seconds": seconds, "think_s": THINK_S}
    return [common | {"from": CLIENTS[number], "name": f"{name}{number}"} for number in range(users)]


def _dropped(link: Link) -> int:
    counted = link.statistics()
    return sum(counted[way]["dropped"]["queue_full"]["packets"] for way in ("down", "up"))


@dataclass(frozen=True)
class Outage:
    """One outage of one way."""

    back_s: float | None
    """From the link's return to the first response to a request that was sent after the return. None without one."""
    waited_s: list[float]
    """Of each request that was sent in the outage, from the link's return to the end of its response. The client's
    patience counts for a request that failed."""
    failed: list[tuple[float, float]]
    """The requests that failed: when each was sent, after the beginning of the outage, and how long it took."""


def outage(bed: NeighbourBed, name: str, outage_s: float, *, tls: bool) -> Outage:
    """Interrupts the link while a client sends small requests. `name` makes their URLs new."""
    number = round((BEFORE_S + outage_s + AFTER_S) / EVERY_S)
    job = {"do": "beat", "host": BULK, "to": SERVERS[BULK], "path": f"/200/{name}-NUMBER", "from": CLIENTS[0]}
    clients = bed.start(job | {"tls": tls, "number": number, "every_s": EVERY_S, "timeout_s": PATIENCE_S})
    time.sleep(BEFORE_S)
    assert bed.line.link
    bed.line.link.outage(f"{outage_s:g}s drop")
    back = time.monotonic() + outage_s
    [done] = bed.finish(clients)
    later = [one for one in done["requests"] if one["sent"] >= back and one["whole"]]
    ends = [one["sent"] + one["seconds"] - back for one in later]
    waiting = [one for one in done["requests"] if back - outage_s <= one["sent"] < back]
    waited = [one["sent"] + (one["seconds"] if one["whole"] else PATIENCE_S) - back for one in waiting]
    failed = [
        (round(one["sent"] - back + outage_s, 1), round(one["seconds"], 1))
        for one in done["requests"]
        if not one["whole"]
    ]
    return Outage(min(ends, default=None), waited, failed)
