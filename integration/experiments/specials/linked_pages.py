"""Prefetching of linked pages, simulated (Gomez et al., section 4.3.4).

Longhaul does not prefetch linked pages. This simulation is the reason. No public trace of clicks exists, so the
visitors are a model. A site has pages with links each. A visitor follows a link with a probability that falls with its
rank by a power law, or leaves. The box at the web learns the links that visitors follow. It sends the linked pages that
at least a given share of them followed, as differences from a page that both boxes have. All pages may be prefetched
here, so a real site, whose visitors send cookies, gains less.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.lab.links import Link, link

from ..plan import Group

PAGES, LINKS = 300, 20
LEAVES = 0.15
"""The share of pages after which a visitor leaves the site."""
VISITORS = 400
FIRST_PAGES = 5
"""A visit begins at one of the most visited pages."""
EXPONENTS = (0.6, 1.0, 1.4)
"""Of the power law: from links that are alike to links of which one is followed most."""
LEAST_SHARE, LEAST_SEEN, MOST_A_PAGE = 0.3, 5, 2
DELTA_BYTES = 3_000
"""An HTML page of 12 kB in gzip as a difference, a quarter of it."""


@dataclass
class Outcome:
    """Counts over all visitors."""

    pages: int = 0
    ready: int = 0
    sent: int = 0


def simulate(exponent: float, seed: int) -> Outcome:
    """Returns the counts for one exponent."""
    draw = random.Random(f"{seed} {exponent}")
    weights = [1 / rank**exponent for rank in range(1, LINKS + 1)]
    links = [draw.sample(range(PAGES), LINKS) for _ in range(PAGES)]
    followed: dict[int, Counter[int]] = defaultdict(Counter)
    outcome = Outcome()
    for _ in range(VISITORS):
        page = draw.randrange(FIRST_PAGES)
        has = {page}
        while True:
            seen = followed[page]
            total = seen.total()
            likely = [
                target
                for target, count in seen.most_common(MOST_A_PAGE)
                if total >= LEAST_SEEN and count / total >= LEAST_SHARE and target not in has
            ]
            outcome.sent += len(likely)
            if draw.random() < LEAVES:
                break
            target = draw.choices(links[page], weights)[0]
            seen[target] += 1
            if target not in has:
                outcome.pages += 1
                outcome.ready += target in likely
            has |= {target, *likely}
            page = target
    return outcome


def saved_ms(on: Link, outcome: Outcome) -> float:
    """Returns the time that a page gains on average: a round trip and the transfer of its HTML, where it was ready."""
    return outcome.ready / outcome.pages * (on.rtt_ms + DELTA_BYTES / on.payload_bytes_per_ms)


def next_page(_: Path, group: Group, seed: int) -> dict[str, Any]:
    """Simulates visitors for every exponent."""
    on = link(group.link_name)
    figures: dict[str, float] = {}
    rows = []
    for exponent in EXPONENTS:
        outcome = simulate(exponent, seed)
        row = {
            "exponent": exponent,
            "ready_share": outcome.ready / outcome.pages,
            "saved_ms": saved_ms(on, outcome),
            "wasted_bytes": (outcome.sent - outcome.ready) * DELTA_BYTES / outcome.pages,
        }
        rows.append(row)
        stem = f"next_page_{exponent:g}".replace(".", "_")
        figures |= {f"{stem}_{key}": round(value, 3) for key, value in row.items() if key != "exponent"}
    return {"figures": figures, "rows": rows}
