"""One page load over the link, with what the link saw of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.bed import Bed
from harness.browser import Load, browser


@dataclass(frozen=True)
class Measured:
    """A load and the link's counters from its first packet to its last."""

    load: Load
    queries: int
    """DNS queries on the link."""
    names: frozenset[str]
    """Names asked for."""
    connections: int
    """TCP connections opened over the link."""
    servers: frozenset[str]
    """Addresses they were opened to."""
    bytes_down: int
    """Bytes of whole IP packets towards the client."""
    bytes_up: int


def measure(bed: Bed, folder: Path, url: str) -> Measured:
    """Loads the page with a fresh browser; the bed decides whether Longhaul is in between."""
    link = bed.topology.link
    assert link, "the bed has no link to measure on"
    with browser(folder, bed.topology.clients, bed.authority) as fresh:
        link.reset()
        # Quiet for longer than a round trip and a half: what the load event set off has begun by then.
        load = fresh.load(url, settle_s=2.0)
        counted = link.statistics()
    dns: dict[str, Any] = counted["dns"]
    return Measured(
        load=load,
        queries=dns["queries"],
        names=frozenset(query["name"] for query in dns["list"]),
        connections=counted["tcp"]["connections"],
        servers=frozenset(one["server"].rsplit(":", 1)[0] for one in counted["tcp"]["list"]),
        bytes_down=counted["down"]["delivered"]["bytes"],
        bytes_up=counted["up"]["delivered"]["bytes"],
    )
