"""The cells, figures and goals of `field`, from the loads that were made so far."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ..goals import Goal
from .scenarios import DIRECT, FIRST_LINKS, LINKS, PAIR, PEERS, SCENARIOS, SCHEMES, WAYS, Measures
from .verdicts import Statistic, Verdict, p95, ratio

WHAT: dict[Measures, dict[str, Statistic]] = {
    Measures.PAGE: {"page": statistics.median},
    Measures.CROWD: {"page, p50": statistics.median, "page, p95": p95},
    Measures.BROWSER: {"page": statistics.median},
    Measures.OUTAGE: {"back": statistics.median},
}
"""The values of a scenario, and how each is made of loads."""
BESIDE_FOUR, USERS_15, OUTAGE = "four-https-downloads", "users-15", "outage-40s"
SHIP = "maritime"


@dataclass(frozen=True)
class Cell:
    """One value of one way, in one scenario on one link."""

    link: str
    scenario: str
    words: str
    scheme: str
    what: str
    way: str
    loads: int
    failed: int
    seconds: float | None
    worst_s: float | None
    ratio: float | None
    """To direct. None where a way has no load, and for direct."""
    low: float | None
    high: float | None
    worst_ratio: float | None
    """The worst load beside the worst one of direct."""
    verdict: str
    """Empty for direct."""


def summed(details: dict[str, Any]) -> dict[str, Any]:
    """Returns the details with cells, figures and goals of their loads."""
    loads = details.get("loads", [])
    found = cells(loads)
    own = figures(found) | beside_peers(loads)
    return details | {
        "cells": [asdict(cell) for cell in found],
        "figures": own,
        "goals": [asdict(goal) for goal in goals(own)],
    }


def cells(loads: Iterable[dict[str, Any]]) -> list[Cell]:
    """Returns every cell, in the order of tables."""
    by_key = {(one["link"], one["scenario"], one["scheme"], one["way"]): one for one in loads}
    return [
        cell
        for link in LINKS
        for scenario in SCENARIOS
        for scheme in SCHEMES
        for way in WAYS
        if (link, scenario, scheme, way) in by_key
        for cell in _cells_of(by_key[link, scenario, scheme, way], by_key.get((link, scenario, scheme, DIRECT)))
    ]


def _cells_of(ours: dict[str, Any], direct: dict[str, Any] | None) -> Iterator[Cell]:
    scenario = SCENARIOS[ours["scenario"]]
    own = ours["seconds"]
    theirs = direct["seconds"] if direct and ours["way"] != DIRECT else []
    for what, of in WHAT[scenario.measures].items():
        found = ratio(own, theirs, of)
        if ours["way"] == DIRECT:
            verdict = ""
        elif not own:
            verdict = Verdict.FAILED.value
        else:
            verdict = found.verdict.value if found else Verdict.UNCLEAR.value
        yield Cell(
            ours["link"], scenario.name, scenario.words, ours["scheme"], what, ours["way"], len(own), ours["failed"],
            _rounded(of(own)) if own else None,
            _rounded(max(own)) if own else None,
            _rounded(found.value) if found else None,
            _rounded(found.low) if found else None,
            _rounded(found.high) if found else None,
            _rounded(max(own) / max(theirs)) if found else None,
            verdict,
        )  # fmt: skip


def figures(found: list[Cell]) -> dict[str, float]:
    """Returns the figures of the issue, of those cells that were measured."""
    own: dict[str, float] = {}
    for what, name in (("page, p50", "ship_15_users_p50"), ("page, p95", "ship_15_users_p95")):
        own |= _worst(name, [cell.ratio for cell in _of(found, SHIP, USERS_15, what)])
    own |= _worst("outage_40s_back_vs_direct", [cell.ratio for cell in _of(found, SHIP, OUTAGE, "back")])
    for link in FIRST_LINKS:
        for scheme in SCHEMES:
            own |= _beside_vs_idle(found, link, scheme)
        measured = [cell for cell in found if cell.link == link and cell.way == PAIR]
        if measured:
            own[f"cells_slower_than_direct_{link}"] = sum(cell.verdict in _BAD for cell in measured)
            own[f"cells_unclear_{link}"] = sum(cell.verdict == Verdict.UNCLEAR for cell in measured)
            own[f"cells_{link}"] = len(measured)
    return own


def beside_peers(loads: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Returns the number of values of each link by which a pair is slower than each peer."""
    by_key = {(one["link"], one["scenario"], one["scheme"], one["way"]): one["seconds"] for one in loads}
    slower: dict[str, float] = {}
    for (link, scenario, scheme, way), theirs in by_key.items():
        if way not in PEERS or link not in FIRST_LINKS:
            continue
        name = slower_than(way, link)
        ours = by_key.get((link, scenario, scheme, PAIR), [])
        found = (ratio(ours, theirs, of) for of in WHAT[SCENARIOS[scenario].measures].values())
        slower[name] = slower.get(name, 0) + sum(one is not None and one.verdict is Verdict.SLOWER for one in found)
    return slower


def slower_than(way: str, link: str) -> str:
    """Returns the name of the figure."""
    return f"cells_slower_than_{way.replace('-', '_')}_{link}"


_BAD = (Verdict.SLOWER, Verdict.FAILED)


def _of(found: list[Cell], link: str, scenario: str, what: str) -> list[Cell]:
    wanted = (link, scenario, what, PAIR)
    return [cell for cell in found if (cell.link, cell.scenario, cell.what, cell.way) == wanted]


def _worst(name: str, ratios: list[float | None]) -> dict[str, float]:
    """The worse scheme, if both were measured."""
    known = [one for one in ratios if one is not None]
    return {name: max(known)} if len(known) == len(SCHEMES) else {}


def _beside_vs_idle(found: list[Cell], link: str, scheme: str) -> dict[str, float]:
    """The time of a page by the pair beside four https downloads, as a multiple of that of the idle link."""
    times = [
        cell.seconds
        for scenario in (BESIDE_FOUR, "idle")
        for cell in _of(found, link, scenario, "page")
        if cell.scheme == scheme
    ]
    match times:
        case [float(beside), float(idle)]:
            return {f"{scheme}_page_beside_4_downloads_vs_idle_{link}": _rounded(beside / idle)}
        case _:
            return {}


BOUNDS = {
    "ship_15_users_p50": (SHIP, "users-15", "http and https", 0.6),
    "ship_15_users_p95": (SHIP, "users-15", "http and https", 0.6),
    "outage_40s_back_vs_direct": (SHIP, OUTAGE, "http and https", 1.5),
    **{f"https_page_beside_4_downloads_vs_idle_{link}": (link, BESIDE_FOUR, "https", 1.35) for link in FIRST_LINKS},
    **{
        slower_than(way, link): (link, "all", "http and https", 0.0) for way in (DIRECT, *PEERS) for link in FIRST_LINKS
    },
}
"""The link, the scenario, the scheme and the bound of each figure that has a goal."""


def goals(own: dict[str, float]) -> list[Goal]:
    """Returns the goals of the figures, each with the name of its link left out."""
    return [
        Goal(name.removesuffix(f"_{link}"), link, scenario, scheme, PAIR, own[name], bound)
        for name, (link, scenario, scheme, bound) in BOUNDS.items()
        if name in own
    ]


def _rounded(value: float) -> float:
    return round(value, 3)
