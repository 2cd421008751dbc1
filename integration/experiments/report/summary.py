"""The summary in words, made from the figures: where Longhaul helps and by how much, where not, and how far from
ideal."""

from __future__ import annotations

from typing import Any

from harness.lab.links import link

from ..results import Cell, Results
from .blocks import Block, Change, Gain, Gains, Heading, Key, Text

EVEN = 0.02
"""Differences up to this count as none."""

OURS = {
    "longhaul-edge": "One box on the wired side, default settings",
    "longhaul-pair": "A pair with a list of names, one box at each end",
    "longhaul-pair-first-visit": "A pair of pair init, on a first visit",
}


def summary(found: dict[str, tuple[dict[str, Any], Results]]) -> list[Block]:
    """Returns sentences, one for each link and contender of Longhaul."""
    blocks: list[Block] = [_gains(found, contender, words) for contender, words in OURS.items()]
    failed = sum(len(cell.failed) for _, results in found.values() for cell in results.cells.values())
    loads = sum(len(cell.runs) for _, results in found.values() for cell in results.cells.values())
    complete = "every object of every page loaded" if not failed else f"{failed} were incomplete"
    return [Heading("In short", 2), Key([*blocks, Text(f"Of {loads} loads, {complete}.")])]


def _gains(found: dict[str, tuple[dict[str, Any], Results]], contender: str, words: str) -> Gains:
    cells = [
        (cell, results)
        for _, results in found.values()
        for cell in results.cells.values()
        if cell.contender == contender and cell.cache == "cold" and cell.complete
    ]
    links = dict.fromkeys(cell.link for cell, _ in cells)
    return Gains(words, [_gain(name, [pair for pair in cells if pair[0].link == name]) for name in links])


def _gain(name: str, cells: list[tuple[Cell, Results]]) -> Gain:
    changes = sorted(
        (
            Change(ratio - 1, f"{cell.page} over {cell.scheme}")
            for cell, results in cells
            if (ratio := results.to_direct(cell)) is not None
        ),
        key=lambda one: one.ratio,
    )
    excess = [ratio for cell, results in cells if (ratio := results.to_ideal(cell)) is not None]
    ends = changes[:1] if not changes or changes[0].ratio == changes[-1].ratio else [changes[0], changes[-1]]
    return Gain(link(name).title, ends, (min(excess), max(excess)) if excess and changes else None)
