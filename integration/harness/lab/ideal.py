"""The least time a page could take on a link: the ideal download protocol of Gomez et al., section 6.3.

One name lookup, one connection, one request, and the whole page as one object at the link's rate with no congestion
control: three round trips and the bytes. A pair of boxes can do without two of the round trips, as its connections
stand and names are resolved behind it: one round trip and the bytes is the floor under everything.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

from harness.namespaces import Namespace
from harness.origins import Site

from .links import Link
from .pages import Page
from .tables import page_table

LOOKUP, HANDSHAKE, REQUEST = 1, 1, 1
IDEAL_ROUND_TRIPS = LOOKUP + HANDSHAKE + REQUEST
FLOOR_ROUND_TRIPS = REQUEST

SQUEEZABLE = {"css", "script", "svg"}


@dataclass(frozen=True)
class Weight:
    """What a page's content weighs."""

    sent_bytes: int
    """As its servers send it."""
    squeezed_bytes: int
    """With its text compressed, which its servers may already have done."""


@dataclass(frozen=True)
class Bound:
    """Load times that cannot be beaten, in milliseconds."""

    ideal_ms: float
    squeezed_ideal_ms: float
    floor_ms: float
    """With compression."""


def bound(weight: Weight, link: Link) -> Bound:
    """The bounds of a page on a link."""

    def least_ms(round_trips: int, content_bytes: int) -> float:
        return round_trips * link.rtt_ms + content_bytes / link.payload_bytes_per_ms

    return Bound(
        least_ms(IDEAL_ROUND_TRIPS, weight.sent_bytes),
        least_ms(IDEAL_ROUND_TRIPS, weight.squeezed_bytes),
        least_ms(FLOOR_ROUND_TRIPS, weight.squeezed_bytes),
    )


def weigh(page: Page, site: Site, internet: Namespace, folder: Path) -> Weight:
    """Fetches every object from its origin, beside the link, as a browser would: content bytes as they are sent."""
    sent = squeezed = 0
    bodies = folder / f"weigh-{page.name}"
    bodies.mkdir(exist_ok=True)
    kinds = ["html", *(one.kind for one in page.objects)]
    lines = ['header = "Accept-Encoding: br, gzip"', "silent", "show-error", "fail"]
    for number, url in enumerate(page.urls("http")):
        host = url.split("/")[2]
        lines += [
            f'resolve = "{host}:80:{site.hosts[host]["address"]}"',
            f'url = "{url}"',
            f'output = "{bodies / str(number)}"',
        ]  # fmt: skip
    config = folder / f"weigh-{page.name}.curl"
    config.write_text("\n".join(lines))
    internet.run("curl", "--config", config, timeout_s=120.0)
    for number, kind in enumerate(kinds):
        body = (bodies / str(number)).read_bytes()
        sent += len(body)
        text = kind == "html" or kind in SQUEEZABLE
        squeezed += min(len(body), len(zlib.compress(body, 9))) if text and not page.table.compressed else len(body)
    return Weight(sent, squeezed)


def ideal_ms(page: str, on: Link) -> float:
    """The ideal for a page's published weight."""
    weight = page_table(page).total_bytes
    return bound(Weight(weight, weight), on).ideal_ms


def timeout_s(page: str, on: Link) -> float:
    """How long a load may take before it counts as failed."""
    return 60 + 6 * ideal_ms(page, on) / 1000
