"""A client of a group with weight 4 beside four clients with weight 1, each with four downloads or an upload.

An upload waits in buffers of the remote, so what a client has sent says little. So the accounts say what has
left for the link, at the same time of two of their intervals.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from harness.lab.groups import accounts, bulk, group, until_weighed
from harness.lab.neighbours import NeighbourBed, neighbour_bed
from harness.results.figures import at_most

TARGETS = [at_most("weights_error", 0.05)]
WEIGHT = 4
CREW = (1, 2, 3, 4)
GROUPS = [group("bridge", 0, weight=WEIGHT), group("crew", *CREW)]
STREAMS = 4
SCHEMES = {"http": False, "https": True}
SECONDS, SKIP_S = 60, 20
INTERVAL_S = 10
"""The remote's Envoy reports a stream that is under way so often."""


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Measures each way. The worst one counts."""
    seconds, skip_s = (30, 10) if quick else (SECONDS, SKIP_S)
    fair = WEIGHT / (WEIGHT + len(CREW))
    with neighbour_bed(folder, "fair", near={"clients": GROUPS}) as bed:
        until_weighed(bed, WEIGHT * 10)
        found = {f"bridge_part_{name}": downloads(bed, seconds, skip_s, tls=tls) for name, tls in SCHEMES.items()}
        found["bridge_part_uploads"] = uploads(bed, seconds)
    return {**found, "weights_error": max(abs(share - fair) / fair for share in found.values())}, {}


def downloads(bed: NeighbourBed, seconds: float, skip_s: float, *, tls: bool) -> float:
    """Returns the bridge's part of downloads."""
    got = [one["bytes"] for one in bed.load(*(bulk(at, STREAMS, seconds, skip_s, tls=tls) for at in (0, *CREW)))]
    return got[0] / sum(got)


def uploads(bed: NeighbourBed, seconds: float) -> float:
    """Returns the bridge's part of uploads over http."""
    window_s = 2 * seconds // INTERVAL_S * INTERVAL_S
    clients = bed.start(*(bulk(at, 1, window_s + 6 * INTERVAL_S, 0, upload=True) for at in (0, *CREW)))
    try:
        time.sleep(4 * INTERVAL_S)
        before = sent(bed)
        time.sleep(window_s)
        got = {name: count - before[name] for name, count in sent(bed).items()}
    finally:
        clients.terminate()
        clients.wait()
    return got["bridge"] / (got["bridge"] + got["crew"])


def sent(bed: NeighbourBed) -> dict[str, int]:
    """Returns the bytes that each group has sent over the link."""
    return {name: account["since_start"]["up"] for name, account in accounts(bed.running.remote).items()}
