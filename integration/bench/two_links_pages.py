"""Pages over two links: beside the quick link alone, and beside downloads. The cost of Multipath TCP for one link."""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.host.waiting import wait_for
from harness.lab.two_links import (
    GEO,
    LTE,
    ORIGIN,
    OneLink,
    TwoLinksBed,
    crossed,
    download,
    load_page,
    resolved,
    two_links,
)
from harness.results.figures import at_most

TARGETS = [
    at_most("pages_vs_quick_link", 1.2),
    at_most("page_after_pause_vs_quick_link", 1.2),
    at_most("single_link_cost", 1.02),
    at_most("page_beside_download_vs_idle", 1.6),
]
SIZE = 2_000_000
BULK_SIZE = 15_000_000
SMALL_RESPONSES = 25
"""So many of them, one after the other, are what health checks are in a pause of some minutes."""


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Loads pages by three pairs, one after the other. The worse scheme counts."""
    loads = 5 if quick else 15
    both = _times(folder / "both", (LTE, GEO), loads)
    alone = _times(folder / "alone", (LTE,), loads)
    before = _times(folder / "before", (LTE,), loads, far_multipath="off")
    part = {way: both[way] / alone[way] for way in ("http", "https")}
    figures: dict[str, float | None] = {f"pages_{way}_vs_quick_link": value for way, value in part.items()}
    figures["pages_vs_quick_link"] = max(part.values())
    figures["page_after_pause_vs_quick_link"] = both["after_pause"] / alone["after_pause"]
    figures["single_link_cost"] = max(alone[way] / before[way] for way in ("http", "https", "download"))
    shared = _beside(folder / "shared", "auto", loads)
    unshared = _beside(folder / "unshared", "off", loads)
    figures["page_beside_download_vs_idle"] = max(shared[way]["ratio"] for way in ("http", "https"))
    figures["page_beside_download_vs_idle_unshared"] = max(unshared[way]["ratio"] for way in ("http", "https"))
    details = {"both": both, "alone": alone, "before": before, "shared": shared, "unshared": unshared}
    return figures, details


def _beside(folder: Path, fill: str, loads: int) -> dict[str, dict[str, float]]:
    """Returns the medians of pages on the idle links, and beside two downloads over https."""
    folder.mkdir()
    lte, geo = (replace(one, fill=fill) for one in (LTE, GEO))
    found: dict[str, dict[str, float]] = {}
    with two_links(folder, (lte, geo)) as bed, ThreadPoolExecutor(2) as pool:
        for way in ("http", "https"):
            load_page(bed, way, "first")
            idle_s = statistics.median(load_page(bed, way, f"idle-{way}-{number}") for number in range(loads))
            before, url, route = crossed(bed, "lte"), download(BULK_SIZE, scheme="https"), resolved(bed, ORIGIN, 443)
            both = [pool.submit(bed.curl.stream, url, *route, timeout_s=240) for _ in range(2)]
            wait_for("the downloads", lambda: crossed(bed, "lte") - before > SIZE, timeout_s=60, interval_s=0.2)  # noqa: B023 - it ends here
            times: list[float] = []
            while len(times) < loads and not any(one.done() for one in both):
                times.append(load_page(bed, way, f"beside-{way}-{len(times)}"))
            for one in both:
                one.result()
            beside_s = statistics.median(times)
            found[way] = {"idle_s": idle_s, "beside_s": beside_s, "ratio": beside_s / idle_s, "loads": len(times)}
    return found


def _after_pause(bed: TwoLinksBed, number: int) -> float:
    """Returns the time of a page over http, after a connection has carried next to nothing."""
    for small in range(SMALL_RESPONSES):
        bed.curl.get(f"http://{ORIGIN}/small-{number}-{small}.bin?size=10", *resolved(bed, ORIGIN, 80))
    return load_page(bed, "http", f"after-pause-{number}")


def _times(folder: Path, lines: tuple[OneLink, ...], loads: int, far_multipath: str = "on") -> dict[str, float]:
    """Returns the medians of pages by both schemes, and of a download."""
    folder.mkdir()
    with two_links(folder, lines, far_multipath=far_multipath) as bed:
        medians: dict[str, float] = {}
        for way in ("http", "https"):
            load_page(bed, way, "first")
            medians[way] = statistics.median(load_page(bed, way, f"{way}{number}") for number in range(loads))
        medians["after_pause"] = statistics.median(_after_pause(bed, number) for number in range(loads // 3))
        route = resolved(bed, ORIGIN, 443)
        taken = [bed.curl.get(download(SIZE, scheme="https"), *route, timeout_s=60).seconds for _ in range(3)]
        return medians | {"download": statistics.median(taken)}
