"""Cases A, B and C of WWW 2004, section 5: the client moves in the middle of a page."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ..plan import Group
from ..roaming import SCENARIOS, Roaming

TARGETS = {"auto": "with its defaults", "http": "as the paper, one http address"}


def mobility(folder: Path, group: Group, seed: int) -> dict[str, Any]:  # noqa: ARG001 - the links lose nothing
    """Runs every case several times, for both targets of moved URLs."""
    figures: dict[str, float] = {}
    rows = []
    for scenario in SCENARIOS.values():
        for target, words in TARGETS.items():
            with (
                tempfile.TemporaryDirectory(dir=folder, prefix="m") as name,
                Roaming(Path(name), scenario, target=target) as roaming,
            ):
                journeys = [roaming.journey() for _ in range(group.repeats)]
            broken = [one for one in journeys if not one.complete]
            figures[f"mobility_{scenario.name}_{target}_journeys"] = len(journeys)
            figures[f"mobility_{scenario.name}_{target}_broken"] = len(broken)
            figures[f"mobility_{scenario.name}_{target}_broken_after_reload"] = sum(
                not one.whole_when_reloaded for one in journeys
            )
            rows.append({
                "case": scenario.name.upper(), "title": scenario.title, "how": words, "journeys": len(journeys),
                "broken": len(broken), "load_ms": sorted(one.load_ms for one in journeys),
                "absent": sorted({url for one in broken for url in one.absent}),
            })  # fmt: skip
    return {"figures": figures, "rows": rows}
