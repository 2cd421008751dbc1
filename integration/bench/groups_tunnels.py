"""TCP ports beside the web on a geostationary link, directly and by a pair: first bytes, a download, clients of ssh,
mail, chat and a VPN, and faults.

The server of the download uses CUBIC. A connection is cut if it does not end as it does directly.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.counted import Counted, count
from bench.parts import Figures
from harness.lab.other_ports import (
    FORBIDDEN,
    FREE,
    LISTED,
    NOT_AT_GROUND,
    SPEAKS_FIRST_IPV6,
    SSH,
    UNTOUCHED,
    OtherPortsBed,
    other_ports_bed,
    same,
)
from harness.lab.tunnels import SPEAKS_FIRST
from harness.net.topology import PRIVATE_ADDRESS
from harness.results.figures import at_least, at_most

TARGETS = [
    at_least("tunnel_first_byte_rtts_saved", 0.95),
    at_least("single_download_vs_direct", 1.0),
    at_most("forbidden_connections", 0),
    at_most("cut_connections", 0),
]
TRIES, QUICK_TRIES = 7, 3
DOWNLOAD, QUICK_DOWNLOAD = 30_000_000, 5_000_000
DOWNLOADS = 3
FILE, SMALL = 1_000_000, 1000
IDLE_S, QUICK_IDLE_S = 1300, 5
"""Longer than the idle timeout of clients' connections on this link."""
OUTAGE_S, QUICK_OUTAGE_S = 40, 3
PATIENCE_S = 180


def measure(folder: Path, *, quick: bool) -> tuple[Figures, Any]:
    """Measures directly, and then by a pair."""
    seen: dict[str, dict[str, Any]] = {}
    forbidden = Counted(0, 0)
    for way in ("direct", "pair"):
        (home := folder / way).mkdir(mode=0o755)
        with other_ports_bed(home, way, congestion="cubic") as bed:
            tries, size = (QUICK_TRIES, QUICK_DOWNLOAD) if quick else (TRIES, DOWNLOAD)
            seen[way] = first_bytes(bed, tries) | {"download": download_s(bed, 1 if quick else DOWNLOADS, size)}
            seen[way] |= clients(bed)
            seen[way]["cut"] = count(lives(bed, quick=quick))
            rtt_s = bed.tunnels.rtt_s
            if way == "pair":
                forbidden = count(refused(bed))
    direct, pair = seen["direct"], seen["pair"]
    saved = {kind: (direct[kind] - pair[kind]) / rtt_s for kind in ("ssh", "imap", "smtp")}
    without = set(direct["cut"].wrong)
    times = {kind: direct[kind] / pair[kind] for kind in ("chat", "vpn_handshake", "vpn_request", "vpn_download")}
    figures: Figures = {
        "tunnel_first_byte_rtts_saved": min(saved.values()),
        **{f"first_byte_rtts_saved_{kind}": value for kind, value in saved.items()},
        "single_download_vs_direct": direct["download"] / pair["download"],
        **{f"{kind}_speed_vs_direct": value for kind, value in times.items()},
        "forbidden_connections": forbidden.value,
        "cut_connections": pair["cut"].value,
        "cut_connections_direct": direct["cut"].value,
    }
    print("\n".join(f"{name:<40} {value:.3g}" for name, value in figures.items()), flush=True)
    details = {
        "seconds": {way: {kind: one[kind] for kind in (*saved, *times, "download")} for way, one in seen.items()},
        "forbidden": {"of": forbidden.of, "wrong": forbidden.wrong},
        "cut": {"of": pair["cut"].of, "wrong": pair["cut"].wrong, "without Longhaul": sorted(without)},
    }
    return figures, details


def first_bytes(bed: OtherPortsBed, tries: int) -> dict[str, float]:
    """Returns the median seconds until a client hears a server of ssh and of mail."""
    mail = {do: [bed.tunnels.finish(bed.mail(do))["greeted"] for _ in range(tries)] for do in ("imap", "smtp")}
    ssh = [bed.tunnels.ask(do="banner", address=SSH, port=22)["seconds"] for _ in range(tries)]
    return {kind: statistics.median(times) for kind, times in (mail | {"ssh": ssh}).items()}


def clients(bed: OtherPortsBed) -> dict[str, float]:
    """Returns the seconds of a session of XMPP with a message there and back, and of the steps of a VPN."""
    chat = bed.tunnels.finish(bed.chat())
    steps = tunnelled(bed)
    return {"chat": chat["seconds"]} | {f"vpn_{step.removesuffix('_s')}": seconds for step, seconds in steps.items()}


def download_s(bed: OtherPortsBed, loads: int, size: int) -> float:
    """Returns the median seconds from the start of a download to its last byte."""

    def one() -> float:
        seen = bed.tunnels.ask(do="download", end="close", size=size, port=FREE, timeout=PATIENCE_S)
        if (seen["bytes"], seen["right"]) != (size, True):
            raise RuntimeError(f"a download is not whole: {seen}")
        return seen["last_s"]

    return statistics.median(one() for _ in range(loads))


def refused(bed: OtherPortsBed) -> Iterator[tuple[str, str]]:
    """Asks the ground for forbidden addresses through every listed port, and for one that is not forbidden."""
    forbidden = [f"{address}:{port}" for address in FORBIDDEN for port in LISTED]
    allowed = f"{SPEAKS_FIRST}:22"
    statuses = bed.connects([*forbidden, allowed, f"{SPEAKS_FIRST}:25", f"{SPEAKS_FIRST}:{UNTOUCHED}"])
    if statuses.pop(allowed) != 200:
        raise RuntimeError("the ground connects to nobody")
    for to, status in statuses.items():
        yield f"CONNECT {to}", "" if status == 403 else f"status {status}"


def lives(bed: OtherPortsBed, *, quick: bool) -> Iterator[tuple[str, str]]:
    """Tries programs, destinations and failures. A problem is a connection that does not end well."""
    yield from programs(bed)
    for name, port, address in (
        ("a port that the ground does not list", NOT_AT_GROUND, SPEAKS_FIRST),
        ("a port on no list", UNTOUCHED, SPEAKS_FIRST),
        ("a private destination", 22, PRIVATE_ADDRESS),
    ):
        yield name, problem(lambda port=port, address=address: bed.banner_s(port, address))
    link = bed.tunnels.line.link
    assert link
    idle_s = QUICK_IDLE_S if quick else IDLE_S
    idle = bed.tunnels.start(do="idle", idle=idle_s, port=FREE, timeout=idle_s + 60)
    time.sleep(idle_s / 2)
    link.outage(f"{QUICK_OUTAGE_S if quick else OUTAGE_S}s drop")
    yield "opened while the link is dead", problem(lambda: bed.banner_s(22))
    survived = bed.tunnels.finish(idle)
    yield f"idle for {idle_s} s, with an outage", "" if survived.get("survived") else str(survived)
    away = bed.refusing_ground() if bed.tunnels.pair else contextlib.nullcontext()
    with away:
        for which in ("the first", "the second"):
            yield f"{which} without a ground", problem(lambda: bed.banner_s(22))


def programs(bed: OtherPortsBed) -> Iterator[tuple[str, str]]:
    """Runs the clients of ssh and mail, all at once."""
    download, (sftp, place) = bed.ssh("download", str(FILE)), bed.sftp(FILE)
    upload = bed.ssh("count")
    mail = {do: bed.mail(do) for do in ("imap", "smtp")}
    counted, _ = upload.communicate(b"x" * FILE, timeout=PATIENCE_S)
    yield "ssh, up", "" if counted == f"{FILE}\n".encode() else repr(counted[:80])
    data, _ = download.communicate(timeout=PATIENCE_S)
    yield "ssh, down", "" if same(data, FILE) else f"{len(data)} bytes"
    sftp.wait(PATIENCE_S)
    yield "sftp", "" if place.exists() and same(place.read_bytes(), FILE) else "the file is not whole"
    for do, session in mail.items():
        seen = bed.tunnels.finish(session)
        yield do, "" if seen["right"] else str(seen)
    chat = bed.tunnels.finish(bed.chat())
    yield "XMPP", "" if chat["right"] else str(chat)
    yield "a VPN over TCP", problem(lambda: tunnelled(bed)["download_s"])
    if bed.tunnels.pair:
        yield "IPv6", problem(lambda: bed.banner_s(FREE, SPEAKS_FIRST_IPV6))


def tunnelled(bed: OtherPortsBed) -> dict[str, float]:
    """Opens a VPN, and loads a small and a large file inside. Returns the seconds of each."""
    with bed.vpn(SMALL, FILE) as vpn:
        return {"handshake_s": vpn.handshake_s, "request_s": vpn.get(SMALL), "download_s": vpn.get(FILE)}


def problem(connect: Callable[[], float]) -> str:
    """Returns the problem of a connection, or nothing."""
    try:
        connect()
    except (AssertionError, RuntimeError, TimeoutError, subprocess.SubprocessError, ValueError) as error:
        return repr(error)[:200]
    return ""
