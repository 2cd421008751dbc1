"""Firewalls that remove the options of Multipath TCP, or drop packets with them: the time of a new connection."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from harness.lab.contenders.base import rules
from harness.lab.two_links import GROUND, LTE, two_links
from harness.results.figures import at_most

TARGETS = [at_most("stripped_fallback_s", 4)]
CONNECT = f"""
import socket, time
began = time.monotonic()
socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).connect(("{GROUND}", 8443))
print(time.monotonic() - began)
"""
CHAIN = "chain strip {{\n type filter hook output priority 0\n oifname lte0 tcp option mptcp exists {what}\n}}"
WAYS = {"whole": "accept", "removed": "reset tcp option mptcp", "dropped": "drop"}


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:  # noqa: ARG001 - of a part
    """Opens a connection by each of the ways. The slowest counts."""
    taken: dict[str, float] = {}
    with two_links(folder, (LTE,)) as bed:
        for way, what in WAYS.items():
            with rules(bed.line.near, CHAIN.format(what=what), table="strip"):
                taken[way] = float(bed.line.near.run(sys.executable, "-c", CONNECT).stdout)
    return {"stripped_fallback_s": max(taken.values())}, taken
