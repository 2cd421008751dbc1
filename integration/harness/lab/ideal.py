"""The least time a page could take on a link: the ideal download protocol of Gomez et al., section 6.3.

The ideal has one name lookup, one connection and one request. The whole page follows as one object at the link's rate,
without congestion control. So the ideal is three round trips and the bytes. A pair saves two round trips, because its
connections are open and it resolves names behind the link. So the floor is one round trip and the bytes.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

from harness.net.namespaces import Namespace
from harness.origins.program import Site

from .links import Link
from .pages import Page
from .tables import page_table

LOOKUP, HANDSHAKE, REQUEST = 1, 1, 1
IDEAL_ROUND_TRIPS = LOOKUP + HANDSHAKE + REQUEST
FLOOR_ROUND_TRIPS = REQUEST

SQUEEZABLE = {"css", "script", "svg"}


@dataclass(frozen=True)
class Weight:
    """The size of a page's content."""

    sent_bytes: int
    """The content as its servers send it."""
    squeezed_bytes: int
    """The content with its text compressed. Its servers may have compressed it already."""


@dataclass(frozen=True)
class Bound:
    """The lower bounds of load times, in milliseconds."""

    ideal_ms: float
    squeezed_ideal_ms: float
    floor_ms: float
    """The floor with compression."""


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
    """Fetches every object from its origin, beside the link, as a browser would. Returns the bytes of the content."""
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
    """The time after which a load counts as failed."""
    return 60 + 6 * ideal_ms(page, on) / 1000
