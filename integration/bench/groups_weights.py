"""A client of a group with weight 4 beside four clients with weight 1, each with four downloads or uploads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.lab.groups import bulk, group, until_weighed
from harness.lab.neighbours import neighbour_bed
from harness.results.figures import at_most

TARGETS = [at_most("weights_error", 0.05)]
WEIGHT = 4
CREW = (1, 2, 3, 4)
GROUPS = [group("bridge", 0, weight=WEIGHT), group("crew", *CREW)]
STREAMS = 4
SECONDS, SKIP_S = 60, 20
WAYS = {"http": {"tls": False}, "https": {"tls": True}, "uploads": {"tls": False, "upload": True}}
"""Uploads over https have no shares yet (docs/src/neighbours.md)."""


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Measures each way. The worst one counts."""
    seconds, skip_s = (30, 10) if quick else (SECONDS, SKIP_S)
    figures: dict[str, float | None] = {}
    errors = []
    with neighbour_bed(folder, "fair", near={"clients": GROUPS}) as bed:
        until_weighed(bed, WEIGHT * 10)
        for name, way in WAYS.items():
            jobs = [bulk(client, STREAMS, seconds, skip_s, **way) for client in (0, *CREW)]
            got = [one["bytes"] for one in bed.load(*jobs)]
            share, fair = got[0] / sum(got), WEIGHT / (WEIGHT + len(CREW))
            figures[f"bridge_part_{name}"] = share
            errors.append(abs(share - fair) / fair)
    figures["weights_error"] = max(errors)
    return figures, {}
