"""The summary in plain words, made of the figures: where it helps, by how much, where not, how far from ideal."""

from __future__ import annotations

from typing import Any

from harness.lab.links import link

from ..results import Cell, Results

EVEN = 0.02
"""Differences up to this are called none."""


def summary(found: dict[str, tuple[dict[str, Any], Results]]) -> str:
    """Sentences, one for each link and contender of ours."""
    sentences = []
    for contender, words in (
        ("longhaul-edge", "one box on the wired side, default settings"),
        ("longhaul-pair", "a pair, one box at each end"),
    ):
        cells = [
            (cell, results)
            for _, results in found.values()
            for cell in results.cells.values()
            if cell.contender == contender and cell.cache == "cold" and cell.complete
        ]
        if not cells:
            sentences.append(f"<b>{words.capitalize()}</b>: not measured here.")
            continue
        lines = [
            _line(name, [pair for pair in cells if pair[0].link == name])
            for name in dict.fromkeys(c.link for c, _ in cells)
        ]
        sentences.append(f"<b>{words.capitalize()}</b>:<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>")
    failed = sum(len(cell.failed) for _, results in found.values() for cell in results.cells.values())
    loads = sum(len(cell.runs) for _, results in found.values() for cell in results.cells.values())
    complete = "every object of every page loaded" if not failed else f"<span class=bad>{failed} were incomplete</span>"
    sentences.append(f"Of {loads} loads, {complete}.")
    return '<h2>In short</h2><div class="key">' + "".join(f"<p>{one}</p>" for one in sentences) + "</div>"


def _line(name: str, cells: list[tuple[Cell, Results]]) -> str:
    changes, excess = [], []
    for cell, results in cells:
        to_direct, to_ideal = results.to_direct(cell), results.to_ideal(cell)
        if to_direct is not None:
            changes.append((to_direct - 1, cell))
        if to_ideal is not None:
            excess.append(to_ideal)
    if not changes:
        return f"{link(name).title}: nothing to compare with."
    best, worst = min(changes, key=lambda one: one[0]), max(changes, key=lambda one: one[0])
    ideal = f"; {min(excess):.1f} to {max(excess):.1f} times the ideal" if excess else ""
    if len(changes) == 1 or best[0] == worst[0]:
        return f"{link(name).title}: {_words(best[0])} ({_which(best[1])}){ideal}."
    ends = f"from {_words(best[0])} ({_which(best[1])}) to {_words(worst[0])} ({_which(worst[1])})"
    return f"{link(name).title}: {ends}{ideal}."


def _which(cell: Cell) -> str:
    return f"{cell.page} over {cell.scheme}"


def _words(change: float) -> str:
    if abs(change) <= EVEN:
        return "no difference"
    return f"{100 * abs(change):.0f} % {'sooner' if change < 0 else '<span class=bad>later</span>'}"
