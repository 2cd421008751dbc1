"""Fifteen users of a ship's link who load pages with pauses, directly and by a pair with equal shares, side by side."""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

from harness.lab.neighbour_loads import Crowd, crowd
from harness.lab.neighbours import NeighbourBed, side_by_side
from harness.results.figures import at_most, table

TARGETS = [
    at_most("ship_15_users_p50_vs_direct", 0.6),
    at_most("ship_15_users_p95_vs_direct", 0.6),
    at_most("drops_vs_direct_15_users", 1),
]
WAYS = ("direct", "fair")
USERS = 15
SECONDS, QUICK_SECONDS = 150, 60


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Lets the users of both ways load pages at the same time. The worse scheme counts."""
    seconds = QUICK_SECONDS if quick else SECONDS
    crowds: dict[tuple[str, str], Crowd] = {}
    with side_by_side(folder, *WAYS) as beds, ThreadPoolExecutor(len(WAYS)) as pool:
        for scheme in ("http", "https"):
            for bed, crowd in zip(beds, pool.map(users, beds, repeat(scheme), repeat(seconds)), strict=True):
                crowds[bed.way, scheme] = crowd
    print(rows(crowds), flush=True)
    figures: dict[str, float | None] = {}
    for scheme in ("http", "https"):
        theirs, ours = (crowds[way, scheme] for way in WAYS)
        figures[f"ship_15_users_p50_vs_direct_{scheme}"] = statistics.median(ours.seconds) / statistics.median(
            theirs.seconds
        )
        figures[f"ship_15_users_p95_vs_direct_{scheme}"] = ours.p95 / theirs.p95
        figures[f"drops_vs_direct_15_users_{scheme}"] = ours.dropped / max(1, theirs.dropped)
    for target in TARGETS:
        figures[target.figure] = max(figures[f"{target.figure}_{scheme}"] or 0 for scheme in ("http", "https"))
    return figures, {f"{way}, {scheme}": len(crowd.seconds) for (way, scheme), crowd in crowds.items()}


def users(bed: NeighbourBed, scheme: str, seconds: int) -> Crowd:
    """Lets all users load pages."""
    found = crowd(bed, scheme, USERS, seconds, tls=scheme == "https")
    if found.cut:
        raise RuntimeError(f"{bed.way}, {scheme}: a page is not whole")
    return found


def rows(crowds: dict[tuple[str, str], Crowd]) -> str:
    """Returns the table of times."""
    lines = [["fifteen users", "pages", "p50, s", "p95, s", "packets dropped"]]
    for (way, scheme), found in crowds.items():
        times = [f"{statistics.median(found.seconds):.1f}", f"{found.p95:.1f}"]
        lines.append([f"{scheme}, {way}", str(len(found.seconds)), *times, str(found.dropped)])
    return table(lines)
