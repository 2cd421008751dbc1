"""Pages over two links that both work, beside the quick link alone, and the cost of Multipath TCP for one link."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from harness.lab.two_links import GEO, LTE, ORIGIN, OneLink, download, load_page, resolved, two_links
from harness.results.figures import at_most

TARGETS = [at_most("pages_vs_quick_link", 1.2), at_most("single_link_cost", 1.02)]
SIZE = 2_000_000


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Loads pages by three pairs, one after the other. The worse scheme counts."""
    loads = 5 if quick else 15
    both = _times(folder / "both", (LTE, GEO), loads)
    alone = _times(folder / "alone", (LTE,), loads)
    before = _times(folder / "before", (LTE,), loads, far_multipath="off")
    part = {way: both[way] / alone[way] for way in ("http", "https")}
    figures: dict[str, float | None] = {f"pages_{way}_vs_quick_link": value for way, value in part.items()}
    figures["pages_vs_quick_link"] = max(part.values())
    figures["single_link_cost"] = max(alone[way] / before[way] for way in ("http", "https", "download"))
    return figures, {"both": both, "alone": alone, "before": before}


def _times(folder: Path, lines: tuple[OneLink, ...], loads: int, far_multipath: str = "on") -> dict[str, float]:
    """Returns the medians of pages by both schemes, and of a download."""
    folder.mkdir()
    with two_links(folder, lines, far_multipath=far_multipath) as bed:
        medians: dict[str, float] = {}
        for way in ("http", "https"):
            load_page(bed, way, "first")
            medians[way] = statistics.median(load_page(bed, way, f"{way}{number}") for number in range(loads))
        route = resolved(bed, ORIGIN, 443)
        taken = [bed.curl.get(download(SIZE, scheme="https"), *route, timeout_s=60).seconds for _ in range(3)]
        return medians | {"download": statistics.median(taken)}
