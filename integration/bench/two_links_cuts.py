"""Cuts of the quick link: what a download loses, how long it stands still, and pages that begin in the cut."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.host.waiting import wait_for
from harness.lab.two_links import (
    GEO,
    LTE,
    ORIGIN,
    TwoLinksBed,
    crossed,
    download,
    load_page,
    longest_gap,
    resolved,
    two_links,
)
from harness.results.figures import at_most

TARGETS = [
    at_most("bytes_lost", 0),
    at_most("stall_s", 2.7),
    at_most("page_after_cut_http_s", 4),
    at_most("page_after_cut_https_s", 6),
    at_most("handshakes_after_loss", 0),
    at_most("flap_failed_requests", 0),
]
SIZE, CUT_S = 8_000_000, 12
PAGE_AFTER_S = 0.7


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Cuts the link in downloads, then lets it flap. The worst stall counts, and the median of pages. The links have
    shares, as in the guide's recipes."""
    cuts: list[dict[str, float]] = []
    with two_links(folder, (replace(LTE, fill="auto"), replace(GEO, fill="auto"))) as bed:
        wait_for("subflows of both links", lambda: "geo0" in bed.line.near.run("ss", "-tnH").stdout, timeout_s=20)
        for number in range(2 if quick else 10):
            cuts.append(_cut(bed, "http" if number % 2 == 0 else "https", number))
        failed = _flap(bed, 100 if quick else 500)
        log = bed.watch.output() if bed.watch else ""
    pages = {scheme: [one["page_s"] for one in cuts if one["scheme"] == scheme] for scheme in ("http", "https")}
    figures: dict[str, float | None] = {
        "bytes_lost": sum(one["lost"] for one in cuts),
        "stall_s": max(one["stall_s"] for one in cuts),
        "stall_median_s": statistics.median(one["stall_s"] for one in cuts),
        "page_after_cut_http_s": statistics.median(pages["http"]),
        "page_after_cut_https_s": statistics.median(pages["https"]),
        "handshakes_after_loss": sum(one["handshakes"] for one in cuts),
        "flap_failed_requests": failed,
    }
    return figures, {"cuts": cuts, "watch": log.splitlines()[-40:]}


def _cut(bed: TwoLinksBed, scheme: str, number: int) -> dict[str, Any]:
    """One cut in a download over https, and a page that begins in it."""
    opened = bed.pair.connections("pipe")["total"]
    with ThreadPoolExecutor(1) as pool:
        before = crossed(bed, "lte")
        url = download(SIZE, scheme="https")
        parts = pool.submit(bed.curl.stream, url, *resolved(bed, ORIGIN, 443), timeout_s=90)
        wait_for("bytes", lambda: crossed(bed, "lte") - before > SIZE // 4, timeout_s=60, interval_s=0.1)
        bed.line.emulated["lte"].outage(f"{CUT_S}s drop")
        time.sleep(PAGE_AFTER_S)
        page_s = load_page(bed, scheme, f"cut{number}")
        whole = parts.result()
    bed.until("lte", alive=True, timeout_s=150)
    time.sleep(2)
    return {
        "scheme": scheme,
        "lost": SIZE - sum(len(part) for _, part in whole),
        "stall_s": round(longest_gap(whole), 2),
        "page_s": page_s,
        "handshakes": bed.pair.connections("pipe")["total"] - opened,
    }


def _flap(bed: TwoLinksBed, count: int) -> int:
    """Sends requests while the link is cut for half of each 20 s. Returns the number of those that failed."""

    def request(number: int) -> bool:
        answer = bed.curl.get(f"http://{ORIGIN}/flap-{number}.bin", *resolved(bed, ORIGIN, 80), timeout_s=30)
        return (answer.status, answer.problem) != (200, "")

    failed, cut_at = [], 0.0
    with ThreadPoolExecutor(8) as pool:
        for number in range(count):
            if time.monotonic() - cut_at > 20:
                bed.line.emulated["lte"].outage("10s drop")
                cut_at = time.monotonic()
            failed.append(pool.submit(request, number))
            time.sleep(0.3)
    return sum(one.result() for one in failed)
