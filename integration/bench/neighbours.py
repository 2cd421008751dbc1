"""`make bench ONLY=neighbours`: clients that share a ship's link. Writes target/bench/neighbours.json.

A pair with equal shares runs beside one with `link.fill: off`. The clients are light ones, because browsers load pages
at their own pace. QUICK=1 loads each page once, and `ARGS=--part=fair` runs one part. The bench needs root, because the
bed consists of network namespaces.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import neighbours_half_rate, neighbours_outage, neighbours_uploads, neighbours_users, parts
from harness.host.artifacts import need_root
from harness.host.processes import end_with_parent
from harness.lab import neighbour_loads
from harness.lab.neighbours import NeighbourBed, jain, neighbour_bed
from harness.results.figures import at_least, at_most

TARGETS = [
    at_least("jain_http", 0.93),
    at_least("jain_https", 0.97),
    at_most("https_page_beside_4_downloads_vs_idle", 1.35),
    at_most("http_page_beside_4_downloads_vs_idle", 1.6),
    at_most("queue_p50_ms", 120),
]
MODULES = {
    "uploads": neighbours_uploads,
    "half-rate": neighbours_half_rate,
    "users": neighbours_users,
    "outage": neighbours_outage,
}
"""The parts beside pages and downloads. Each module has the targets of its figures."""
ALL_TARGETS = [*TARGETS, *(target for module in MODULES.values() for target in module.TARGETS)]
QUICK = bool(os.environ.get("QUICK"))
LOADS = 1 if QUICK else 5
GREEDY, OTHERS = 16, 4
"""The downloads of one client, and the clients with one each."""
SHARE_S, SHARE_SKIP_S = 40, 10
READ_S = 5
"""The time that a user takes to read a page."""


def unshared(folder: Path, _: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """A pair that shares nothing."""
    return measured(folder, "unshared", "_unshared")


def fair(folder: Path, _: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """A pair that gives equal shares."""
    return measured(folder, "fair", "")


def measured(folder: Path, way: str, suffix: str) -> tuple[parts.Figures, Any]:
    """Returns the figures of one way, and the number of loads of each page."""
    with neighbour_bed(folder, way) as bed:
        figures = {f"{name}{suffix}": value for name, value in of(bed).items()}
    print("\n".join(f"{name:<50} {value:.3g}" for name, value in figures.items()), flush=True)
    return dict(figures), {"loads": LOADS}


PARTS: dict[str, parts.Part] = {
    "unshared": unshared,
    "fair": fair,
    **{name: parts.of_module(module) for name, module in MODULES.items()},
}


def ready() -> None:
    """Looks for what all parts need."""
    need_root()
    end_with_parent()


def of(bed: NeighbourBed) -> dict[str, float]:
    """Returns the figures of one way."""
    fresh = (f"load{number}" for number in itertools.count())
    figures: dict[str, float] = {}
    idle = {}
    for tls, scheme in ((False, "http"), (True, "https")):
        idle[scheme] = statistics.median(page(bed, next(fresh), tls=tls) for _ in range(LOADS))
        figures[f"idle_{scheme}_page_s"] = idle[scheme]
    for tls, scheme in ((False, "http"), (True, "https")):
        beside = pages_beside_downloads(bed, fresh, tls=tls)
        figures[f"{scheme}_page_beside_4_downloads_s"] = beside
        figures[f"{scheme}_page_beside_4_downloads_vs_idle"] = beside / idle[scheme]
        figures[f"{scheme}_page_beside_4_clients_vs_idle"] = pages_beside_clients(bed, fresh, tls=tls) / idle[scheme]
        assert bed.line.link
        bed.line.link.reset()
        shares = bed.shares([GREEDY, *[1] * OTHERS], SHARE_S, skip_s=SHARE_SKIP_S, tls=tls)
        figures[f"jain_{scheme}"] = jain(shares)
        figures[f"greedy_part_{scheme}"] = shares[0] / sum(shares)
        figures[f"rate_used_{scheme}"] = sum(shares) * 8 / (SHARE_S - SHARE_SKIP_S) / 2e6
        queueing = bed.line.link.statistics()["down"]["queueing"]
        figures[f"queue_p50_ms_{scheme}"] = queueing["p50_ms"]
    figures["queue_p50_ms"] = max(figures.pop("queue_p50_ms_http"), figures.pop("queue_p50_ms_https"))
    return figures


def page(bed: NeighbourBed, fresh: str, *, tls: bool) -> float:
    """Loads a new page. Returns the seconds."""
    done = neighbour_loads.page(bed, fresh, tls=tls)
    if not done.whole:
        raise RuntimeError(f"a page is not whole: {done}")
    return done.seconds


def pages_beside_downloads(bed: NeighbourBed, fresh: Iterator[str], *, tls: bool) -> float:
    """Loads pages beside four downloads over https of another client. Returns the median of their seconds."""
    with neighbour_loads.beside(bed, 4, tls=True):
        return statistics.median(page(bed, next(fresh), tls=tls) for _ in range(LOADS))


def pages_beside_clients(bed: NeighbourBed, fresh: Iterator[str], *, tls: bool) -> float:
    """Loads pages, and reads each, beside one download each of four other clients over https. Returns the same."""
    seconds = []
    with neighbour_loads.beside(bed, 1, tls=True, others=OTHERS):
        for _ in range(LOADS):
            seconds.append(page(bed, next(fresh), tls=tls))
            time.sleep(READ_S)
    return statistics.median(seconds)


if __name__ == "__main__":
    sys.exit(parts.main("neighbours", __doc__, PARTS, ALL_TARGETS, ready))
