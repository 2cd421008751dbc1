"""One page load over the link: filmed, and counted by the link itself."""

from __future__ import annotations

from dataclasses import dataclass

from harness.browsers.chromium import Load, browser
from harness.lab.contenders.base import LinkContender, LinkTrack
from harness.lab.quiet import wait_until_quiet

BEYOND_ROUND_TRIP_S = 0.2
"""Requests that the load event causes begin within this time and a round trip."""


@dataclass(frozen=True)
class Measured:
    """A load and the link's counters from its first packet to its last."""

    load: Load
    queries: int
    """DNS queries on the link."""
    connections: int
    """TCP connections opened over the link."""
    bytes_down: int
    """Bytes of whole IP packets towards the client."""
    bytes_up: int


def measure(track: LinkTrack, way: LinkContender, url: str) -> Measured:
    """Loads the page by one way with a fresh browser."""
    link = track.line.link
    assert link, "the bed has no link to measure on"
    with way.engaged(track), browser(track.folder, track.line.clients, track.authority) as fresh:
        wait_until_quiet(link, track.link.rtt_ms)
        link.reset()
        load = fresh.load(url, settle_s=track.link.rtt_ms / 1000 + BEYOND_ROUND_TRIP_S, film=True)
        counted = link.statistics()
    return Measured(
        load=load,
        queries=counted["dns"]["queries"],
        connections=counted["tcp"]["connections"],
        bytes_down=counted["down"]["delivered"]["bytes"],
        bytes_up=counted["up"]["delivered"]["bytes"],
    )
