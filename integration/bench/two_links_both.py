"""A large download over two free links with like round trips, both of which carry its bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.lab import links
from harness.lab.two_links import LTE, ORIGIN, crossed, download, now_s, resolved, two_links
from harness.results.figures import at_least

TARGETS = [at_least("download_vs_both_rates", 0.7)]
SIZE, QUICK_SIZE = 100_000_000, 20_000_000
OPERATORS = ("one", "two")


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Loads over https, whose bytes do not shrink, with the recipe of the guide for two links of LTE."""
    size = QUICK_SIZE if quick else SIZE
    both_bps = len(OPERATORS) * links.link(LTE.profile).down_bps
    with two_links(folder, tuple(replace(LTE, name=name, fill="auto") for name in OPERATORS)) as bed:
        before = {name: crossed(bed, name) for name in OPERATORS}
        began_s = now_s()
        answer = bed.curl.get(download(size, scheme="https"), *resolved(bed, ORIGIN, 443), timeout_s=600)
        taken_s = now_s() - began_s
        if len(answer.body) != size:
            raise RuntimeError(f"{len(answer.body)} bytes of {size}: {answer}")
        found = {"seconds": taken_s} | {f"{name}_bytes": crossed(bed, name) - before[name] for name in OPERATORS}
    return {"download_vs_both_rates": size * 8 / taken_s / both_bps}, found
