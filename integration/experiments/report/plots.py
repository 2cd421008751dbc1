"""Plots as SVG text for the page: bars beside a bound, curves, waterfalls."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Mapping, Sequence

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.lab.contenders import CONTENDERS
from harness.lab.measure import Run

from ..results import Cell, Results, Spread

mpl.use("svg")
mpl.rcParams.update({
    "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9, "axes.spines.top": False,
    "axes.spines.right": False, "axes.grid": True, "grid.color": "#e5e5e5", "axes.axisbelow": True,
    "svg.hashsalt": "longhaul",
})  # fmt: skip

GREY, OURS, PEER, IDEAL, PAPER = "#8a8f98", "#0b6e4f", "#5b7db1", "#b3261e", "#d9a441"

_numbers = itertools.count()

KINDS = {"Document": "#333333", "Stylesheet": "#7b5ea7", "Script": "#d9a441", "Image": "#0b6e4f", "Font": "#b3261e"}


def colour(contender: str) -> str:
    """Returns the colour: Longhaul's, that of direct loads, or a peer's."""
    if contender == "direct":
        return GREY
    return OURS if contender.startswith("longhaul") else PEER


def title_of(contender: str) -> str:
    """Returns a contender's name for readers."""
    return CONTENDERS[contender].title if contender in CONTENDERS else contender


def load_times(cells: Sequence[Cell], results: Results) -> Markup:
    """Draws one bar for each contender, with its quartiles, and lines for the ideal and the floor."""
    shown = [(cell, cell.load_ms) for cell in cells if cell.load_ms]
    figure = Figure(figsize=(6.4, 0.9 + 0.3 * len(shown)))
    axes = figure.add_subplot()
    for row, (cell, spread) in enumerate(shown):
        assert spread
        _bar(axes, row, spread, colour(cell.contender))
    axes.set_yticks(range(len(shown)), [title_of(cell.contender) for cell, _ in shown])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("load time, seconds (bar: median, line: quartiles)")
    if shown and (least := results.bound(shown[0][0].link, shown[0][0].page)):
        axes.axvline(least.ideal_ms / 1000, color=IDEAL, linewidth=1.2)
        axes.text(least.ideal_ms / 1000, -0.62, " ideal", color=IDEAL, va="center", fontsize=8)
    return _svg(figure)


def _bar(axes: Axes, row: int, spread: Spread, fill: str) -> None:
    axes.barh(row, spread.median / 1000, height=0.66, color=fill)
    axes.plot([spread.low / 1000, spread.high / 1000], [row, row], color="black", linewidth=1)
    axes.text(max(spread.high, spread.median) / 1000, row, f" {spread.median / 1000:.2f}", va="center", fontsize=8)


def beside_paper(
    labels: Sequence[str], ours: Sequence[float | None], theirs: Sequence[tuple[float, float] | None], axis: str
) -> Markup:
    """Draws the measured figures as bars, each in front of a band for the paper's range."""
    figure = Figure(figsize=(6.4, 0.9 + 0.34 * len(labels)))
    axes = figure.add_subplot()
    for row, (mine, band) in enumerate(zip(ours, theirs, strict=True)):
        if band:
            low, high = band
            width = max(high - low, 0.4)
            axes.barh(row, width, left=low, height=0.8, color=PAPER, alpha=0.75)
        if mine is not None:
            axes.barh(row, mine, height=0.42, color=OURS)
            axes.text(mine, row, f" {mine:+.0f}", va="center", ha="left" if mine >= 0 else "right", fontsize=8)
    axes.set_yticks(range(len(labels)), list(labels))
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    axes.margins(x=0.15)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(axis)
    return _svg(figure)


def curves(
    lines: Mapping[str, Sequence[tuple[float, Spread]]], bounds: Sequence[tuple[float, float]], axis: str
) -> Markup:
    """Draws load time against a number, with a line for each contender and one for the ideal."""
    figure = Figure(figsize=(4.6, 3.0))
    axes = figure.add_subplot()
    markers = iter("osD^vP*")
    for name, points in lines.items():
        xs = [x for x, _ in points]
        middle = [spread.median / 1000 for _, spread in points]
        errors = [
            [(spread.median - spread.low) / 1000 for _, spread in points],
            [(spread.high - spread.median) / 1000 for _, spread in points],
        ]
        axes.errorbar(
            xs, middle, yerr=errors, label=title_of(name), color=colour(name), marker=next(markers), markersize=4
        )
    axes.plot([x for x, _ in bounds], [y / 1000 for _, y in bounds], color=IDEAL, linestyle="--", label="ideal")
    axes.set_xlabel(axis)
    axes.set_ylabel("load time, s")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=7)
    return _svg(figure)


def groups_of_bars(labels: Sequence[str], series: Mapping[str, tuple[str, Sequence[float]]], axis: str) -> Markup:
    """Draws a group of bars for each label. `series` is name -> (colour, values)."""
    figure = Figure(figsize=(6.4, 2.8))
    axes = figure.add_subplot()
    width = 0.8 / max(len(series), 1)
    for number, (name, (fill, values)) in enumerate(series.items()):
        at = [position - 0.4 + width * (number + 0.5) for position in range(len(labels))]
        axes.bar(at, values, width=width * 0.94, color=fill, label=name)
        for x, value in zip(at, values, strict=True):
            axes.text(x, value, f"{value:.0f}", ha="center", va="bottom", fontsize=7)
    axes.set_xticks(range(len(labels)), list(labels))
    axes.set_ylabel(axis)
    axes.tick_params(axis="x", labelsize=7)
    axes.grid(visible=False, axis="x")
    axes.legend(frameon=False, fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=max(len(series), 1))
    return _svg(figure)


def waterfall(run: Run, until_ms: float) -> Markup:
    """Draws every request of one load: the wait for its connection, the wait for its first byte, the reception."""
    figure = Figure(figsize=(4.5, 0.8 + 0.052 * max(len(run.steps), 12)))
    axes = figure.add_subplot()
    for row, step in enumerate(run.steps):
        sent = step.sent_ms if step.sent_ms is not None else step.started_ms
        answered = step.answered_ms if step.answered_ms is not None else step.ended_ms
        fill = KINDS.get(step.kind, "#5b7db1")
        axes.barh(row, sent - step.started_ms, left=step.started_ms, height=0.9, color="#d5d8dd")
        axes.barh(row, answered - sent, left=sent, height=0.9, color=fill, alpha=0.35)
        axes.barh(row, max(step.ended_ms - answered, until_ms / 400), left=answered, height=0.9, color=fill)
    axes.axvline(run.load_ms, color=IDEAL, linewidth=0.9)
    axes.set_xlim(0, until_ms * 1.02)
    axes.invert_yaxis()
    axes.set_yticks([])
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("ms after the page was asked for", fontsize=8)
    axes.tick_params(labelsize=8)
    return _svg(figure)


def _svg(figure: Figure) -> Markup:
    """Returns the figure as an element that scales with the page. Matplotlib escapes its text."""
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    # Two plots in one page must not share ids.
    salt = f"p{next(_numbers)}"
    text = re.sub(r'id="([^"]+)"', rf'id="{salt}\1"', text)
    return Markup(re.sub(r'(url\(|href=")#', rf"\1#{salt}", text))
