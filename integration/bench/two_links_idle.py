"""An idle hour of a metered standby, from some minutes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from harness.lab.two_links import LTE, OneLink, two_links
from harness.results.figures import at_most

TARGETS = [at_most("metered_kb_idle_per_hour", 60)]
METERED = OneLink("geo", "geo", price="metered")
SETTLE_S = 20


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Counts the bytes of both directions, also those of handshakes that were not needed."""
    seconds = 250 if quick else 1200
    with two_links(folder, (LTE, METERED)) as bed:
        time.sleep(SETTLE_S)
        bed.line.emulated["geo"].reset()
        time.sleep(seconds)
        counted = bed.line.emulated["geo"].statistics()
    total = sum(counted[way]["offered"]["bytes"] for way in ("down", "up"))
    packets = sum(counted[way]["offered"]["packets"] for way in ("down", "up"))
    return {"metered_kb_idle_per_hour": total / 1000 * 3600 / seconds}, {"seconds": seconds, "packets": packets}
