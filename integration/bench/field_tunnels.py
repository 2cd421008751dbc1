"""The figures of connections that pass unread: downloads cut, half-closes lost, idle connections cut, banners late.

`python bench/field_tunnels.py [--idle SECONDS]` prints them. It needs root, because its beds are network namespaces.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.lab import links
from harness.tunnels import SPEAKS_FIRST, TunnelBed, tunnel_bed

LINKS = ("maritime", "geo", "rural-lte", "cdma-average")
"""Ship, GEO, LTE, average cell."""
AT_ONCE = 5
"""Each download has four others beside it. All of them count: 4 links x 2 ends x 5 = 40."""
DOWNLOAD_S = 12
"""The seconds of the link that all downloads at once fill."""
CLEAN, RESET = "close", "reset"
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


def cut_downloads(bed: TunnelBed, profile: str) -> int:
    """Returns how many of 2 x AT_ONCE downloads over TLS are cut, with clean and reset ends. A clean end must say
    `close_notify`, and the end of a reset must not."""
    size = links.link(profile).down_bps // 8 * DOWNLOAD_S // AT_ONCE
    cut = 0
    for end in (CLEAN, RESET):
        ask = {"do": "download", "end": end, "size": size, "tls": True, "ends_at_close_notify": True, "timeout": 240}
        seen = [bed.finish(client) for client in [bed.start(**ask) for _ in range(AT_ONCE)]]
        cut += sum((one.get("bytes"), one.get("told")) != (size, end == CLEAN) for one in seen)
    return cut


def lost_half_closes(bed: TunnelBed) -> int:
    """Returns how many clients get no response after they ended their own direction, of two a kind: with a FIN in the
    packet of the request, and one second later."""
    seen = [bed.ask(do="half", size=1000, late=late, timeout=30, **kind) for kind in KINDS.values() for late in (0, 1)]
    return sum(one.get("answer") != "1000 fin\n" for one in seen)


def cut_idle(bed: TunnelBed, idle_s: int) -> int:
    """Returns how many connections do not survive an idle time, of each kind one, all at the same time."""
    asks = (KINDS | HTTP_KINDS).values()
    started = [bed.start(do="idle", idle=idle_s, timeout=idle_s + 60, **ask) for ask in asks]
    return sum(not bed.finish(client)["survived"] for client in started)


def banner_s(bed: TunnelBed, port: int) -> float:
    """Returns the seconds until a client hears a server that speaks first."""
    heard = bed.ask(do="banner", address=SPEAKS_FIRST, port=port)
    return heard["seconds"] if heard["right"] else float("inf")


def measure(folder: Path, *, idle_s: int = 400) -> Mapping[str, float]:
    """Returns all figures. A pair shows each of them; the idle time and the half-close are those of an edge, too."""
    figures = {"tunnel_downloads_cut": 0.0, "half_closes_lost": 0.0, "idle_cut": 0.0}
    for profile in LINKS:
        (home := folder / profile).mkdir()
        with tunnel_bed(home, "pair", profile) as bed:
            figures["tunnel_downloads_cut"] += cut_downloads(bed, profile)
            if profile == "geo":
                figures |= {f"banner_s_{port}": banner_s(bed, port) for port in (443, 80)}
                figures["half_closes_lost"] += lost_half_closes(bed)
                figures["idle_cut"] += cut_idle(bed, idle_s)
    (home := folder / "edge").mkdir()
    with tunnel_bed(home, "edge", "geo") as bed:
        figures["half_closes_lost"] += lost_half_closes(bed)
        figures["idle_cut"] += cut_idle(bed, idle_s)
    return figures


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--idle", type=int, default=400, help="idle seconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lh-field-tunnels-") as folder:
        for name, value in measure(Path(folder), idle_s=options.idle).items():
            print(f"{name:24} {value:g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
