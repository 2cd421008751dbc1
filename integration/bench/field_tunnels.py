"""The figures of connections that pass unread: downloads cut, half-closes lost, idle connections cut, banners late."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.counted import Counted, count, together
from harness.lab import links
from harness.lab.tunnels import SPEAKS_FIRST, TunnelBed, tunnel_bed
from harness.results.figures import at_most

TARGETS = [
    at_most("tunnel_downloads_cut", 0),
    at_most("half_closes_lost", 0),
    at_most("idle_cut", 0),
    at_most("banner_s_443", 1.0),
    at_most("banner_s_80", 5.0),
]
LINKS = ("maritime", "geo", "rural-lte", "cdma-average")
"""Ship, GEO, LTE, average cell."""
FASTEST = "leo"
"""For the other figures. On this link the times are those of Longhaul, and hardly those of the link."""
AT_ONCE = 5
"""Each download has four others beside it. All of them count: 4 links x 2 ends x 5 = 40."""
DOWNLOAD_S, QUICK_DOWNLOAD_S = 12, 4
"""The seconds of the link that all downloads at once fill."""
IDLE_S, QUICK_IDLE_S = 400, 5
PATIENCE_S = 240
ENDS = {"clean": "close", "reset": "reset"}
KINDS: dict[str, dict[str, Any]] = {
    "tls": {"tls": True},
    "tls without a name": {"tls": True, "name": None},
    "bare, port 443": {},
    "bare, port 80": {"port": 80},
}
HTTP_KINDS: dict[str, dict[str, Any]] = {
    "websocket": {"kind": "ws", "port": 80},
    "events": {"kind": "sse", "port": 80},
}


def measure(folder: Path, *, quick: bool) -> dict[str, Counted]:
    """Returns all figures. Downloads cross a pair alone; an edge and a pair show the others."""
    cuts = [("pair", profile) for profile in (("rural-lte",) if quick else LINKS)]

    def one(at: tuple[str, str]) -> dict[str, Counted]:
        way, profile = at
        (home := folder / f"{way}-{profile}").mkdir(mode=0o755)
        with tunnel_bed(home, way, profile) as bed:
            return cut_downloads(bed, profile, quick=quick)

    def other(way: str) -> dict[str, Counted]:
        (home := folder / way).mkdir(mode=0o755)
        with tunnel_bed(home, way, FASTEST) as bed:
            heard = {name if way == "pair" else f"{way}_{name}": wait for name, wait in banners(bed).items()}
            return heard | lost_half_closes(bed) | cut_idle(bed, QUICK_IDLE_S if quick else IDLE_S)

    # The connections of these two are idle while those of the others are not.
    with ThreadPoolExecutor(2) as idle, ThreadPoolExecutor(2) as busy:
        quiet = idle.map(other, ("edge", "pair"))
        parts = [*busy.map(one, cuts), *quiet]
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: together(part[name] for part in parts if name in part) for name in names}


def cut_downloads(bed: TunnelBed, profile: str, *, quick: bool = False) -> dict[str, Counted]:
    """Counts the cut ones of 2 x AT_ONCE downloads over TLS, with clean and reset ends. A clean end must say
    `close_notify`, and the end of a reset must not."""
    size = links.link(profile).down_bps // 8 * (QUICK_DOWNLOAD_S if quick else DOWNLOAD_S) // AT_ONCE

    def cases() -> Iterator[tuple[str, str]]:
        for name, end in ENDS.items():
            ask = {"do": "download", "end": end, "size": size, "tls": True, "ends_at_close_notify": True}
            started = [bed.start(**ask, timeout=PATIENCE_S) for _ in range(AT_ONCE)]
            for seen in map(bed.finish, started):
                whole = (seen.get("bytes"), seen.get("told")) == (size, name == "clean")
                yield f"{bed.way}, {profile}, {name} end of {size} bytes", "" if whole else str(seen)

    return {"tunnel_downloads_cut": count(cases())}


def lost_half_closes(bed: TunnelBed) -> dict[str, Counted]:
    """Counts the clients that get no response after they ended their own direction, of two a kind: with a FIN in the
    packet of the request, and one second later."""

    def cases() -> Iterator[tuple[str, str]]:
        for (name, kind), late in itertools.product(KINDS.items(), (0, 1)):
            seen = bed.ask(do="half", size=1000, late=late, timeout=30, **kind)
            whole = seen.get("answer") == "1000 fin\n"
            yield f"{bed.way}, {name}, {'later' if late else 'at once'}", "" if whole else str(seen)

    return {"half_closes_lost": count(cases())}


def cut_idle(bed: TunnelBed, idle_s: int) -> dict[str, Counted]:
    """Counts the connections that do not survive an idle time. One of each kind is idle, all at the same time."""
    kinds = KINDS | HTTP_KINDS
    started = [bed.start(do="idle", idle=idle_s, timeout=idle_s + 60, **ask) for ask in kinds.values()]
    ended = [bed.finish(client) for client in started]
    survived = [(name, "" if seen.get("survived") else str(seen)) for name, seen in zip(kinds, ended, strict=True)]
    return {"idle_cut": count((f"{bed.way}, {name}", problem) for name, problem in survived)}


def banners(bed: TunnelBed) -> dict[str, Counted]:
    """Returns the seconds until a client hears a server that speaks first, by port."""
    found = {}
    for port in (443, 80):
        heard = bed.ask(do="banner", address=SPEAKS_FIRST, port=port)
        found[f"banner_s_{port}"] = Counted(heard["seconds"] if heard["right"] else float("inf"), 1)
    return found
