"""An outage of 40 s on a ship's link, while a client sends a small request each half second, directly and by a pair.

The time of a way is that from the link's return to the first response to a request that was sent after the return. A
failed request is one that got no response within a minute, or a broken one.

A pair serves first what waited for the link, so requests that were sent in the outage have a figure of their own. It is
the median time from the link's return to the end of the response.
"""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

from harness.lab.neighbour_loads import Outage, outage
from harness.lab.neighbours import NeighbourBed, side_by_side
from harness.results.figures import at_most, table

TARGETS = [at_most("outage_40s_back_vs_direct", 1.5), at_most("outage_https_failures_vs_direct", 1)]
WAYS = ("direct", "fair")
OUTAGE_S = 40


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:  # noqa: ARG001 - one run is short
    """Interrupts the links of both ways at the same time. The worse scheme counts for the time."""
    seen: dict[tuple[str, str], Outage] = {}
    with side_by_side(folder, *WAYS) as beds, ThreadPoolExecutor(len(WAYS)) as pool:
        for scheme in ("http", "https"):
            for bed, found in zip(beds, pool.map(_outage, beds, repeat(scheme)), strict=True):
                seen[bed.way, scheme] = found
    print(rows(seen), flush=True)
    figures: dict[str, float | None] = {}
    for scheme in ("http", "https"):
        before, after = (seen[way, scheme].back_s for way in WAYS)
        figures[f"outage_40s_back_vs_direct_{scheme}"] = after / before if after and before else None
        for way in WAYS:
            figures[f"outage_waiting_{scheme}_{way}_s"] = statistics.median(seen[way, scheme].waited_s)
    both = [figures[f"outage_40s_back_vs_direct_{scheme}"] for scheme in ("http", "https")]
    figures["outage_40s_back_vs_direct"] = None if None in both else max(one or 0 for one in both)
    theirs, ours = (len(seen[way, "https"].failed) for way in WAYS)
    figures["outage_https_failures_vs_direct"] = ours / max(1, theirs)
    return figures, {f"{way}, {scheme}": vars(found) for (way, scheme), found in seen.items()}


def _outage(bed: NeighbourBed, scheme: str) -> Outage:
    return outage(bed, scheme, OUTAGE_S, tls=scheme == "https")


def rows(seen: dict[tuple[str, str], Outage]) -> str:
    """Returns the table of outages."""
    lines = [["an outage of 40 s", "first new response, s", "responses that waited, median, s", "failed requests"]]
    for (way, scheme), found in seen.items():
        back = "none" if found.back_s is None else f"{found.back_s:.1f}"
        waited = f"{statistics.median(found.waited_s):.1f}"
        lines.append([f"{scheme}, {way}", back, waited, str(len(found.failed))])
    return table(lines)
