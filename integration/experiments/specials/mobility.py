"""Cases A, B and C of WWW 2004, section 5: the client moves in the middle of a page."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..plan import Group
from ..roaming import SCENARIOS, Roaming, Scenario

TARGETS = {"auto": "with its defaults", "http": "as the paper, one http address"}


@dataclass(frozen=True)
class Variant:
    """One case with one target of moved URLs."""

    scenario: Scenario
    target: str
    siblings: bool

    @property
    def name(self) -> str:
        """Returns the name of its figures."""
        return f"mobility_{self.scenario.name}_{self.target}" + ("_siblings" if self.siblings else "")

    @property
    def how(self) -> str:
        """Returns its words in the report."""
        return TARGETS[self.target] + (", siblings" if self.siblings else "")


VARIANTS = tuple(
    Variant(scenario, target, siblings)
    for scenario in SCENARIOS.values()
    for siblings in ((False, True) if scenario.old and scenario.new else (False,))
    for target in TARGETS
)


def mobility(folder: Path, group: Group, seed: int) -> dict[str, Any]:  # noqa: ARG001 - the links lose nothing
    """Runs every case several times, for both targets of moved URLs, and case B with siblings too."""
    figures: dict[str, float] = {}
    rows = []
    for variant in VARIANTS:
        scenario = variant.scenario
        with (
            tempfile.TemporaryDirectory(dir=folder, prefix="m") as name,
            Roaming(Path(name), scenario, target=variant.target, siblings=variant.siblings) as roaming,
        ):
            journeys = [roaming.journey() for _ in range(group.repeats)]
        broken = [one for one in journeys if not one.complete]
        figures[f"{variant.name}_journeys"] = len(journeys)
        figures[f"{variant.name}_broken"] = len(broken)
        figures[f"{variant.name}_broken_after_reload"] = sum(not one.whole_when_reloaded for one in journeys)
        rows.append({
            "case": scenario.name.upper(), "title": scenario.title, "how": variant.how, "journeys": len(journeys),
            "broken": len(broken), "load_ms": sorted(one.load_ms for one in journeys),
            "absent": sorted({url for one in broken for url in one.absent}),
        })  # fmt: skip
    return {"figures": figures, "rows": rows}
