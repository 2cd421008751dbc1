"""Fifteen users of a ship's link who load pages with pauses, directly and by a pair with equal shares, side by side."""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

from harness.lab.neighbours import CLIENTS, NeighbourBed, light_page, side_by_side
from harness.results.figures import at_most, table

TARGETS = [
    at_most("ship_15_users_p50_vs_direct", 0.6),
    at_most("ship_15_users_p95_vs_direct", 0.6),
    at_most("drops_vs_direct_15_users", 1),
]
WAYS = ("direct", "fair")
USERS = 15
SECONDS, QUICK_SECONDS = 150, 60
THINK_S = 15


@dataclass(frozen=True)
class Crowd:
    """The pages of fifteen users, and the packets that the link dropped."""

    seconds: list[float]
    """Of all pages."""
    dropped: int
    """Packets that the queues of the link dropped."""

    @property
    def p95(self) -> float:
        """The page that only one in twenty exceeds."""
        return statistics.quantiles(self.seconds, n=20)[-1]


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
    page = light_page("FRESH")
    common = {"do": "user", "tls": scheme == "https", "seconds": seconds, "think_s": THINK_S}
    jobs = [common | page | {"from": CLIENTS[number], "name": f"{scheme}{number}"} for number in range(USERS)]
    assert bed.line.link
    bed.line.link.reset()
    results = bed.load(*jobs)
    counted = bed.line.link.statistics()
    if not all(one["whole"] for one in results):
        raise RuntimeError(f"{bed.way}, {scheme}: a page is not whole")
    dropped = sum(counted[way]["dropped"]["queue_full"]["packets"] for way in ("down", "up"))
    return Crowd([second for one in results for second in one["seconds"]], dropped)


def rows(crowds: dict[tuple[str, str], Crowd]) -> str:
    """Returns the table of times."""
    lines = [["fifteen users", "pages", "p50, s", "p95, s", "packets dropped"]]
    for (way, scheme), crowd in crowds.items():
        times = [f"{statistics.median(crowd.seconds):.1f}", f"{crowd.p95:.1f}"]
        lines.append([f"{scheme}, {way}", str(len(crowd.seconds)), *times, str(crowd.dropped)])
    return table(lines)
