"""A page in one flight: the round trips saved by objects that are sent early, and the cost of objects that are not
used.

Every contender has its own beds, one after the other. Each page has several visitors with fresh browsers, one after the
other, and the last of them returns. Each first visitor of a pair that bundles has a new pair, so every byte crosses.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from harness.boxes.admin import admin_socket, ask
from harness.lab.bed import LinkBed, standing
from harness.lab.contenders import contender
from harness.lab.ideal import Weight, bound, timeout_s
from harness.lab.measure import Run, measure
from harness.lab.pages import Page, make_page
from harness.lab.tables import page_table

from ..plan import Group

SHORT = {"cnn": "cnn", "lab-modern": "modern"}
BUNDLING, WITHOUT = "longhaul-pair-bundling", "longhaul-pair"
EDGE = "longhaul-edge-full"
EARLIER = 4
"""Visitors of a page before the measurement at one box, so that its cache is warm."""
TODAY = "geo"
"""The link of the project's own figures. Figures of the paper's links begin with the link's name."""
LATER = 3
"""Visitors of a page at a pair that bundles. The unused bytes are counted over all of them."""


def one_flight(folder: Path, group: Group, seed: int) -> dict[str, Any]:
    """Returns load times relative to direct and to the floor, bytes sent without use, a second visit's bytes, and the
    delay of the first byte."""
    pages = [make_page(page_table(name)) for name in group.pages]
    runs: dict[tuple[str, str, str], list[Run]] = {}
    weights: dict[str, Weight] = {}
    figures: dict[str, float] = {}
    for name, number in _beds(group):
        home = folder / f"{name}-{number}"
        home.mkdir()
        with standing(home, group.link, pages, [contender(name)], seed=seed, weighed=not weights) as bed:
            if name not in bed.contenders:
                continue
            weights = weights or bed.weights
            earlier = EARLIER if name == EDGE else 0
            visitors = earlier + _visitors(group, name)
            for page, visitor in [(page, visitor) for page in pages for visitor in range(1, visitors + 1)]:
                last = visitor == visitors and group.link_name == TODAY
                for run in _visit(bed, page, name, group, visitor, last=last):
                    later = name == BUNDLING and visitor > 1 and run.cache == "cold"
                    cache = "earlier" if visitor <= earlier else "later" if later else run.cache
                    runs.setdefault((name, page.name, cache), []).append(run)
            if name == BUNDLING:
                figures |= _bundle(bed)
    for page in pages:
        figures |= _of_page(page.name, runs, weights[page.name], group)
    if group.link_name != TODAY:
        figures = {f"{group.link_name.replace('-', '_')}_{name}": value for name, value in figures.items()}
    rows = [
        {"link": group.link_name, "contender": name, "page": page, "cache": cache,
         "load_ms": [round(run.load_ms) for run in found],
         "first_byte_ms": [round(run.first_byte_ms) for run in found], "bytes_down": [run.bytes_down for run in found],
         "problems": [run.problem for run in found if run.problem]}
        for (name, page, cache), found in runs.items()
    ]  # fmt: skip
    return {"figures": figures, "rows": rows}


def _beds(group: Group) -> list[tuple[str, int]]:
    repeats = {name: group.repeats if name == BUNDLING else 1 for name in group.contenders}
    return [(name, number) for name, times in repeats.items() for number in range(times)]


def _visitors(group: Group, name: str) -> int:
    """Returns the number of measured visitors for each page of one bed. The paper compares only first visits."""
    if name != BUNDLING:
        return group.repeats
    return LATER if group.link_name == TODAY else 1


def _visit(bed: LinkBed, page: Page, name: str, group: Group, visitor: int, *, last: bool) -> list[Run]:
    template = Run("one-flight", group.link_name, page.name, "http", name, visitor)
    limit_s = timeout_s(page.name, group.link)
    return measure(bed.track, page, bed.contenders[name], template, warm=last, timeout_s=limit_s)


def _of_page(page: str, runs: dict[tuple[str, str, str], list[Run]], weight: Weight, group: Group) -> dict[str, float]:
    short = SHORT.get(page, page.replace("-", "_"))

    def median(name: str, what: str, cache: str = "cold") -> float | None:
        values = [getattr(run, what) for run in runs.get((name, page, cache), []) if run.complete]
        return statistics.median(values) if values else None

    floor_ms = bound(weight, group.link).floor_ms
    ratios = {
        f"pair_{short}_vs_direct": (median(BUNDLING, "load_ms"), median("direct", "load_ms")),
        f"pair_later_{short}_vs_direct": (median(BUNDLING, "load_ms", "later"), median("direct", "load_ms")),
        f"pair_without_bundling_{short}_vs_direct": (median(WITHOUT, "load_ms"), median("direct", "load_ms")),
        f"plain_pair_{short}_vs_direct": (median("envoy-pair", "load_ms"), median("direct", "load_ms")),
        f"pair_{short}_vs_floor": (median(BUNDLING, "load_ms"), floor_ms),
        f"edge_{short}_vs_direct": (median(EDGE, "load_ms"), median("direct", "load_ms")),
        f"revisit_{short}_bytes_vs_no_bundling": (
            median(BUNDLING, "bytes_down", "warm"), median(WITHOUT, "bytes_down", "warm"),
        ),
    }  # fmt: skip
    figures = {name: round(ours / theirs, 4) for name, (ours, theirs) in ratios.items() if ours and theirs}
    for name in group.contenders:
        found = runs.get((name, page, "cold"), [])
        figures[f"{short}_{name.replace('-', '_')}_failures"] = sum(not run.complete for run in found)
        if load_ms := median(name, "load_ms"):
            figures[f"{short}_{name.replace('-', '_')}_load_ms"] = round(load_ms)
    with_it, without = median(BUNDLING, "first_byte_ms"), median(WITHOUT, "first_byte_ms")
    if with_it and without:
        figures[f"page_first_byte_added_ms_{short}"] = round(with_it - without, 1)
    return figures


def _bundle(bed: LinkBed) -> dict[str, float]:
    """Returns the unused share of the bundles, by the ground's own counters."""
    state = bed.track.folder_of("pair") / "ground" / "state"
    text = ask(admin_socket(state), "/stats?filter=longhaul_bundling")
    counted = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(": ")
        if value.isdigit():
            counted[name.rpartition("longhaul_bundling_")[2]] = int(value)
    used, unused = counted.get("used_bytes_total", 0), counted.get("unused_bytes_total", 0)
    figures = {f"bundle_{name}": float(value) for name, value in counted.items()}
    if used + unused:
        figures["bytes_sent_never_asked"] = round(unused / (used + unused), 4)
    return figures
