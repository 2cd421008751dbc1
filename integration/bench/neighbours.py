"""`make bench ONLY=neighbours`: clients that share a ship's link. Writes target/bench/neighbours.json.

A pair with equal shares runs beside one with `link.fill: off`. The clients are light ones, because browsers load pages
at their own pace. QUICK=1 loads each page once. The bench needs root, because the bed consists of network namespaces.
"""

from __future__ import annotations

import itertools
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.host.artifacts import Missing, need_root, scratch
from harness.host.processes import end_with_parent
from harness.host.usage import description
from harness.lab.neighbours import BULK, CLIENTS, SERVERS, NeighbourBed, jain, light_page, neighbour_bed
from harness.results.figures import at_least, at_most, verdicts, write

TARGETS = [
    at_least("jain_http", 0.93),
    at_least("jain_https", 0.97),
    at_most("https_page_beside_4_downloads_vs_idle", 1.35),
    at_most("http_page_beside_4_downloads_vs_idle", 1.6),
    at_most("queue_p50_ms", 120),
]
QUICK = bool(os.environ.get("QUICK"))
LOADS = 1 if QUICK else 5
GREEDY, OTHERS = 16, 4
"""The downloads of one client, and the clients with one each."""
SHARE_S, SHARE_SKIP_S = 40, 10
BULK_S = 600
"""Longer than any page takes."""
HEAD_START_S = 8
"""The time for which downloads run alone."""


def main() -> int:
    """Measures and prints everything."""
    results = scratch("bench") / "neighbours.json"
    try:
        need_root()
    except Missing as reason:
        print(f"skipped: {reason}")
        write(results, {}, skipped=str(reason))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    end_with_parent()
    figures: dict[str, float | None] = {}
    with tempfile.TemporaryDirectory(prefix="lh-neighbours-") as folder:
        for way, suffix in (("unshared", "_unshared"), ("fair", "")):
            (home := Path(folder) / way).mkdir()
            with neighbour_bed(home, way) as bed:
                figures |= {f"{name}{suffix}": value for name, value in of(bed).items()}
    print(f"{verdicts(figures, TARGETS)}\n")
    for name, value in figures.items():
        print(f"{name:<50} {value:.3g}")
    print(f"\nwritten to {results}")
    write(results, figures, TARGETS, machine=description(), loads=LOADS)
    return 0


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
    [done] = bed.load({"do": "page", "from": CLIENTS[0], "tls": tls} | light_page(fresh))
    if not done["whole"]:
        raise RuntimeError(f"a page is not whole: {done}")
    return done["seconds"]


def pages_beside_downloads(bed: NeighbourBed, fresh: Iterator[str], *, tls: bool) -> float:
    """Loads pages beside four downloads over https of another client. Returns the median of their seconds."""
    bulk: dict[str, Any] = {"do": "bulk", "host": BULK, "to": SERVERS[BULK], "seconds": BULK_S, "streams": 4}
    downloads = bed.start(bulk | {"from": CLIENTS[1], "tls": True})
    try:
        time.sleep(HEAD_START_S)
        return statistics.median(page(bed, next(fresh), tls=tls) for _ in range(LOADS))
    finally:
        downloads.terminate()
        downloads.wait()


if __name__ == "__main__":
    sys.exit(main())
