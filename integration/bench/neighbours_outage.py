"""An outage of 40 s on a ship's link, while a client sends a small request each half second, directly and by a pair.

The time of a way is that from the link's return to the first response to a request that was sent after the return. A
failed request is one that got no response within a minute, or a broken one.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

from harness.lab.neighbours import BULK, CLIENTS, SERVERS, NeighbourBed, side_by_side
from harness.results.figures import at_most, table

TARGETS = [at_most("outage_40s_back_vs_direct", 1.5), at_most("outage_https_failures_vs_direct", 1)]
WAYS = ("direct", "fair")
BEFORE_S, OUTAGE_S, AFTER_S = 5, 40, 40
EVERY_S = 0.5
PATIENCE_S = 60


@dataclass(frozen=True)
class Outage:
    """One outage of one way."""

    back_s: float | None
    """None if no request after it had a response."""
    failed: list[tuple[float, float]]
    """The requests that failed: when each was sent, after the beginning of the outage, and how long it took."""


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:  # noqa: ARG001 - one run is short
    """Interrupts the links of both ways at the same time. The worse scheme counts for the time."""
    seen: dict[tuple[str, str], Outage] = {}
    with side_by_side(folder, *WAYS) as beds, ThreadPoolExecutor(len(WAYS)) as pool:
        for scheme in ("http", "https"):
            for bed, outage in zip(beds, pool.map(one_outage, beds, repeat(scheme)), strict=True):
                seen[bed.way, scheme] = outage
    print(rows(seen), flush=True)
    figures: dict[str, float | None] = {}
    for scheme in ("http", "https"):
        before, after = (seen[way, scheme].back_s for way in WAYS)
        figures[f"outage_40s_back_vs_direct_{scheme}"] = after / before if after and before else None
    both = [figures[f"outage_40s_back_vs_direct_{scheme}"] for scheme in ("http", "https")]
    figures["outage_40s_back_vs_direct"] = None if None in both else max(one or 0 for one in both)
    theirs, ours = (len(seen[way, "https"].failed) for way in WAYS)
    figures["outage_https_failures_vs_direct"] = ours / max(1, theirs)
    return figures, {f"{way}, {scheme}": vars(outage) for (way, scheme), outage in seen.items()}


def one_outage(bed: NeighbourBed, scheme: str) -> Outage:
    """Interrupts the link while requests go on."""
    number = round((BEFORE_S + OUTAGE_S + AFTER_S) / EVERY_S)
    job = {"do": "beat", "host": BULK, "to": SERVERS[BULK], "path": f"/200/{scheme}-NUMBER", "from": CLIENTS[0]}
    clients = bed.start(job | {"tls": scheme == "https", "number": number, "every_s": EVERY_S, "timeout_s": PATIENCE_S})
    time.sleep(BEFORE_S)
    assert bed.line.link
    bed.line.link.outage(f"{OUTAGE_S}s drop")
    back = time.monotonic() + OUTAGE_S
    [done] = bed.finish(clients)
    later = [one for one in done["requests"] if one["sent"] >= back and one["whole"]]
    ends = [one["sent"] + one["seconds"] - back for one in later]
    failed = [
        (round(one["sent"] - back + OUTAGE_S, 1), round(one["seconds"], 1))
        for one in done["requests"]
        if not one["whole"]
    ]
    return Outage(min(ends, default=None), failed)


def rows(seen: dict[tuple[str, str], Outage]) -> str:
    """Returns the table of outages."""
    lines = [["an outage of 40 s", "first response, s", "failed requests"]]
    for (way, scheme), outage in seen.items():
        back = "none" if outage.back_s is None else f"{outage.back_s:.1f}"
        lines.append([f"{scheme}, {way}", back, str(len(outage.failed))])
    return table(lines)
