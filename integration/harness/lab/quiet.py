"""Waits until nothing crosses the link: the background work of one contender must not meet the load of another.

A pair opens warm connections at its start and again after each page. On a slow link this takes longer than many a page.
"""

from __future__ import annotations

import time

from harness.net.link import Link

BEYOND_ROUND_TRIP_S = 0.3
LONGEST_S = 180.0


def wait_until_quiet(link: Link, rtt_ms: float) -> bool:
    """Waits until no packet was offered for a round trip and a little. Returns False if that does not come in time."""
    still_s = rtt_ms / 1000 + BEYOND_ROUND_TRIP_S
    deadline = time.monotonic() + LONGEST_S
    seen, since = -1, time.monotonic()
    while time.monotonic() < deadline:
        counted = link.statistics()
        offered = counted["up"]["offered"]["packets"] + counted["down"]["offered"]["packets"]
        if offered != seen:
            seen, since = offered, time.monotonic()
        elif time.monotonic() - since >= still_s:
            return True
        time.sleep(0.05)
    return False
