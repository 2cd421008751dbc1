"""One download alone on a ship's link, and the uploads of a client with sixteen beside four clients with one each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.lab.links import link
from harness.lab.neighbours import jain, neighbour_bed
from harness.results.figures import at_least

TARGETS = [at_least("jain_uploads_http", 0.93), at_least("jain_uploads_https", 0.97), at_least("rate_used", 0.85)]
SHIP = "maritime"
GREEDY, OTHERS = 16, 4
SECONDS, SKIP_S = 60, 20
ALONE_S, ALONE_SKIP_S = 30, 10


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:  # noqa: ARG001 - one run is short
    """Measures both schemes. The worse one counts for the download."""
    figures: dict[str, float | None] = {}
    schemes = ((False, "http"), (True, "https"))
    with neighbour_bed(folder, "fair", SHIP) as bed:
        # Before the uploads, which leave bytes in the sockets of the remote. Nothing could acknowledge a download then.
        for tls, scheme in schemes:
            [received] = bed.shares([1], ALONE_S, skip_s=ALONE_SKIP_S, tls=tls)
            figures[f"rate_used_alone_{scheme}"] = received * 8 / (ALONE_S - ALONE_SKIP_S) / link(SHIP).down_bps
        for tls, scheme in schemes:
            shares = bed.uploads([GREEDY, *[1] * OTHERS], SECONDS, skip_s=SKIP_S, tls=tls)
            figures[f"jain_uploads_{scheme}"] = jain(shares)
    figures["rate_used"] = min(figures[f"rate_used_alone_{scheme}"] or 0 for _, scheme in schemes)
    return figures, {}
