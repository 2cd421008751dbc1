"""Pages over https on a geostationary link on a first visit, by a pair with `dns.instant: on`.

The bed is that of `names_first_visit`. No name is listed, and nothing was learned.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.names_first_visit import DIRECT, PAGES, rounds, rounds_of
from harness.lab.contenders.base import LinkContender
from harness.lab.contenders.direct import Direct
from harness.lab.contenders.init_pair import FirstVisit
from harness.lab.instant import ON
from harness.lab.measure import Run
from harness.results.figures import at_most, ratio

INSTANT = "instant"
TARGETS = [at_most("instant_light", 0.48), at_most("instant_heavy", 0.40)]
WAYS: dict[str, LinkContender] = {DIRECT: Direct(), INSTANT: FirstVisit(remote_more=ON)}


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Loads both pages in rounds. Returns the ratios, and all loads."""
    runs, wanted = rounds(folder, WAYS, quick=quick)
    return figures_of(runs, wanted), [{**run.as_dict(), "steps": []} for run in runs]


def figures_of(runs: list[Run], sizes: list[str]) -> dict[str, float | None]:
    """Returns the ratio to the direct loads, round by round. None without a round of two whole loads."""
    figures: dict[str, float | None] = {}
    for size in sizes:
        pairs = [pair for pair in rounds_of(runs, PAGES[size], INSTANT) if all(run.complete for run in pair)]
        ours, theirs = ([one.load_ms for one in loads] for loads in zip(*pairs, strict=True)) if pairs else ([], [])
        figures[f"instant_{size}"] = ratio(ours, theirs) if pairs else None
    return figures
