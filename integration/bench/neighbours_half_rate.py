"""A link that carries half of what `link` states, as in rain: how the shares and the queue are then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.lab import links
from harness.lab.neighbours import jain, neighbour_bed
from harness.results.figures import at_least, at_most

TARGETS = [at_least("jain_half_rate", 0.9), at_most("half_rate_queue_ms", 250)]
SHIP = "maritime"
GREEDY, OTHERS = 16, 4
SECONDS, SKIP_S = 40, 10


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:  # noqa: ARG001 - one run is short
    """Lets a greedy client download beside four others. The worse scheme counts."""
    ship = links.link(SHIP)
    halves = {"down.rate_bps": str(ship.down_bps // 2), "up.rate_bps": str(ship.up_bps // 2)}
    figures: dict[str, float | None] = {}
    with neighbour_bed(folder, "fair", SHIP, link=halves, stated=ship.setting) as bed:
        assert bed.line.link
        for tls, scheme in ((False, "http"), (True, "https")):
            bed.line.link.reset()
            shares = bed.shares([GREEDY, *[1] * OTHERS], SECONDS, skip_s=SKIP_S, tls=tls)
            figures[f"jain_half_rate_{scheme}"] = jain(shares)
            figures[f"half_rate_queue_ms_{scheme}"] = bed.line.link.statistics()["down"]["queueing"]["p50_ms"]
    figures["jain_half_rate"] = min(figures[f"jain_half_rate_{scheme}"] or 0 for scheme in ("http", "https"))
    figures["half_rate_queue_ms"] = max(figures[f"half_rate_queue_ms_{scheme}"] or 0 for scheme in ("http", "https"))
    return figures, halves
