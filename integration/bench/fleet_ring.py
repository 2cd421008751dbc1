"""A part of `make bench ONLY=fleet`, the ring of caches: one of three nodes of `cache.parent` dies under load."""

from __future__ import annotations

import json
from pathlib import Path

from harness.boxes.desk import desk_in
from harness.boxes.pep import Pep, command
from harness.boxes.ring import Outcome, lose_a_node, ring_of
from harness.host.waiting import wait_for
from harness.results.figures import at_least, at_most

TARGETS = [
    at_most("ring_failed_requests", 0),
    at_most("ring_moved_share", 0.45),
    at_least("ring_same_node_share", 1),
    at_least("ring_smallest_share", 0.2),
    at_most("ring_largest_share", 0.5),
]
NODES, URLS = 3, 3000


def measure(folder: Path) -> dict[str, float | None]:
    """Returns the figures of `TARGETS`. Runs everything on loopback, below `folder`."""
    outcome = run(folder)
    return {
        "ring_failed_requests": outcome.failed,
        "ring_moved_share": outcome.moved_share,
        "ring_same_node_share": outcome.same_share,
        "ring_smallest_share": min(outcome.shares),
        "ring_largest_share": max(outcome.shares),
        "ring_requests_during_the_death": outcome.requests,
        "ring_returned_share": outcome.returned_share,
    }


def run(folder: Path) -> Outcome:
    """Lets a node of a ring die and come back."""
    with desk_in(folder) as desk, ring_of(desk, NODES) as ring, Pep(desk.write(**ring.changes), folder) as pep:

        def responding() -> int:
            report = json.loads(command("status", "--state", pep.state, "--json").stdout)
            return sum(node["up"] for node in report["parents"])

        wait_for("all nodes respond", lambda: responding() == NODES, 10)
        return lose_a_node(ring, URLS, lambda: responding() == NODES - 1, lambda: responding() == NODES)
