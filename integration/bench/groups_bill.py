"""The sums of the accounts, and the part of no client, beside the bytes that Envoy counts on connections to the ground.

Groups and a client of no group load pages, download and upload side by side. Some connections outlive the accounts.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from harness.lab.groups import NO_CLIENT, accounts, bulk, crossed, group, until_settled
from harness.lab.neighbours import CLIENTS, NeighbourBed, light_page, neighbour_bed
from harness.results.figures import at_most

TARGETS = [at_most("account_error", 0.01)]
GROUPS = [group("bridge", 0, weight=4), group("crew", 1, 2, quota="20gib/month")]
SECONDS = 60


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Measures one mixed run."""
    with neighbour_bed(folder, "fair", near={"clients": GROUPS}) as bed:
        return of(bed, 30 if quick else SECONDS)


def of(bed: NeighbourBed, seconds: float) -> tuple[dict[str, float | None], Any]:
    """Returns the figures of a run."""
    remote = bed.running.remote
    before, began = until_settled(remote), crossed(remote)
    assert bed.line.link
    bed.line.link.reset()
    fresh = (f"bill{number}" for number in itertools.count())
    ways = itertools.product((0, 2, 3), (False, True))
    pages = [{"do": "page", "from": CLIENTS[at], "tls": tls} | light_page(next(fresh)) for at, tls in ways]
    jobs = [bulk(1, 2, seconds, 0), bulk(2, 2, seconds, 0, tls=True), bulk(0, 1, seconds / 2, 0, tls=True)]
    bed.load(*jobs, bulk(3, 1, seconds / 2, 0, upload=True), *pages)
    after, moved = until_settled(remote), crossed(remote) - began
    grown = {name: count - before.get(name, 0) for name, count in after.items()}
    counted = sum(grown.values())
    wire = sum(bed.line.link.statistics()[way]["carried"]["bytes"] for way in ("down", "up"))
    figures = {
        "account_error": abs(counted - moved) / moved,
        "account_to_wire": counted / wire,
        "account_of_no_client": grown[NO_CLIENT] / moved,
        "account_mb": counted / 1e6,
    }
    return figures, {"accounts": accounts(remote)}
