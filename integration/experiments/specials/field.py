"""One scenario on one link: directly and by a pair of the quick start, each with a link and servers of its own.

The ways of a load run side by side where the links leave the machine idle, and in turns where they do not. So the state
of the machine is the same for all of them. Where the spread hides a verdict, more loads are made.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.lab.neighbour_loads import beside, browsing, crowd, outage, page
from harness.lab.neighbours import NeighbourBed, side_by_side
from harness.lab.peers import missing

from ..field.scenarios import (
    DIRECT,
    PAIR,
    SCENARIOS,
    Bulk,
    Measures,
    Scenario,
    crowd_s,
    is_side_by_side,
    loads,
    most_loads,
)
from ..field.verdicts import Verdict, ratio
from ..plan import Group


@dataclass
class Loads:
    """The loads of one way over one scheme."""

    seconds: list[float] = field(default_factory=list)
    failed: int = 0
    dropped: int = 0
    """Packets that the queues of the link dropped beside crowds."""

    def add(self, more: Loads) -> None:
        """Adds the values of another load."""
        self.seconds += more.seconds
        self.failed += more.failed
        self.dropped += more.dropped


Load = Callable[[NeighbourBed, str], Loads]
"""Makes one load. The text makes its URLs new."""


def field_bed(folder: Path, group: Group, seed: int) -> dict[str, Any]:
    """Returns the loads of a bed, and the ways that are not installed."""
    scenario, on = SCENARIOS[group.scenario], group.link
    stated, changes = scenario.stated(on), scenario.emulated(on)
    draw = random.Random(f"{seed} {group.bed}")
    found: dict[tuple[str, str], Loads] = {}
    absent = {way: reason for way in scenario.ways(on) if (reason := missing(way))}
    ways = [way for way in scenario.ways(on) if way not in absent]
    at_once = len(ways) if is_side_by_side(scenario, on) else 1
    with (
        side_by_side(folder, *ways, profile=on.name, link=changes, stated=stated) as beds,
        ThreadPoolExecutor(at_once) as pool,
    ):
        for scheme in group.schemes:
            load = load_of(scenario, tls=scheme == "https", seconds=crowd_s(group.repeats))
            for number in range(most_loads(scenario, group.repeats)):
                if number >= loads(scenario, group.repeats) and not hidden(found, scheme):
                    break
                turns = draw.sample(beds, len(beds))
                done = pool.map(load, turns, [f"{scheme}{number}"] * len(turns))
                for bed, one in zip(turns, done, strict=True):
                    found.setdefault((scheme, bed.way), Loads()).add(one)
    return {
        "loads": [
            {"link": on.name, "scenario": scenario.name, "scheme": scheme, "way": way, **vars(one)}
            for (scheme, way), one in found.items()
        ],
        "absent": absent,
    }


def hidden(found: dict[tuple[str, str], Loads], scheme: str) -> bool:
    """Returns whether the spread of the loads hides the verdict about the pair."""
    ours, theirs = (found[scheme, way].seconds for way in (PAIR, DIRECT))
    said = ratio(ours, theirs)
    return said is not None and said.verdict is Verdict.UNCLEAR


def load_of(scenario: Scenario, *, tls: bool, seconds: float) -> Load:
    """Returns what one load of a scenario is."""

    def page_alone_or_beside(bed: NeighbourBed, fresh: str) -> Loads:
        with _bulk(bed, scenario):
            done = page(bed, fresh, tls=tls)
        return Loads([done.seconds]) if done.whole else Loads(failed=1)

    def users(bed: NeighbourBed, fresh: str) -> Loads:
        pages = crowd if scenario.measures is Measures.CROWD else browsing
        done = pages(bed, fresh, scenario.users, seconds, tls=tls)
        return Loads(done.seconds, done.cut, done.dropped)

    def back(bed: NeighbourBed, fresh: str) -> Loads:
        done = outage(bed, fresh, scenario.outage_s, tls=tls)
        return Loads(failed=1) if done.back_s is None else Loads([done.back_s])

    return {Measures.PAGE: page_alone_or_beside, Measures.OUTAGE: back}.get(scenario.measures, users)


def _bulk(bed: NeighbourBed, scenario: Scenario) -> Any:
    if scenario.bulk is None:
        return nullcontext()
    return beside(bed, scenario.streams, tls=scenario.bulk is not Bulk.HTTP, upload=scenario.bulk is Bulk.UPLOAD)
