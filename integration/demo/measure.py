"""One page load over the link: filmed, and counted by the link itself."""

from __future__ import annotations

from dataclasses import dataclass

from harness.browsers.chromium import Load
from harness.lab.contenders.base import LinkContender, LinkTrack
from harness.lab.measure import expecting
from harness.lab.quiet import wait_until_quiet
from harness.lab.served import ServedPage

LIMIT_S = 120
"""After this time, a page counts as broken."""
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


def measure(track: LinkTrack, way: LinkContender, page: ServedPage, scheme: str) -> Measured:
    """Loads the page by one way with a fresh browser."""
    link = track.line.link
    assert link, "the bed has no link to measure on"
    with expecting(track, page, way, scheme, LIMIT_S).engaged(track), track.browser() as fresh:
        wait_until_quiet(link, track.link.rtt_ms)
        link.reset()
        settle_s = track.link.rtt_ms / 1000 + BEYOND_ROUND_TRIP_S
        load = fresh.load(page.url(scheme), timeout_s=LIMIT_S, settle_s=settle_s, film=True)
        counted = link.statistics()
    return Measured(
        load=load,
        queries=counted["dns"]["queries"],
        connections=counted["tcp"]["connections"],
        bytes_down=counted["down"]["delivered"]["bytes"],
        bytes_up=counted["up"]["delivered"]["bytes"],
    )
