"""A large download and an upload over two free links with like round trips, both of which carry the bytes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.clients.commands import Answer
from harness.lab import links
from harness.lab.two_links import LTE, ORIGIN, TwoLinksBed, crossed, download, now_s, resolved, two_links
from harness.results.figures import at_least

TARGETS = [at_least("download_vs_both_rates", 0.7), at_least("upload_vs_both_rates", 0.7)]
DOWN, QUICK_DOWN = 100_000_000, 20_000_000
UP, QUICK_UP = 20_000_000, 4_000_000
OPERATORS = ("one", "two")


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Loads and sends over https, whose bytes do not shrink, with the recipe of the guide for two links of LTE."""
    (down, up), link = (QUICK_DOWN, QUICK_UP) if quick else (DOWN, UP), links.link(LTE.profile)
    sent = folder / "sent"
    sent.write_bytes(b"x" * up)
    with two_links(folder, tuple(replace(LTE, name=name, fill="auto") for name in OPERATORS)) as bed:
        began = {name: crossed(bed, name) for name in OPERATORS}
        loaded, down_s = _timed(bed, download(down, scheme="https"))
        if len(loaded.body) != down:
            raise RuntimeError(f"{len(loaded.body)} bytes of {down}: {loaded}")
        came = {f"{name}_bytes": crossed(bed, name) - began[name] for name in OPERATORS}
        response, up_s = _timed(bed, f"https://{ORIGIN}/_/echo", "--data-binary", f"@{sent}")
        if json.loads(response.body)["length"] != up:
            raise RuntimeError(f"the origin did not get {up} bytes: {response}")
    figures: dict[str, float | None] = {
        "download_vs_both_rates": down * 8 / down_s / (len(OPERATORS) * link.down_bps),
        "upload_vs_both_rates": up * 8 / up_s / (len(OPERATORS) * link.up_bps),
    }
    return figures, {"download_s": down_s, "upload_s": up_s, **came}


def _timed(bed: TwoLinksBed, url: str, *options: str) -> tuple[Answer, float]:
    """Sends a request. Returns the response, and the seconds until its end."""
    began_s = now_s()
    response = bed.curl.get(url, *options, *resolved(bed, ORIGIN, 443), timeout_s=600)
    return response, now_s() - began_s
