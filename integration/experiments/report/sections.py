"""A section for each experiment: the papers' figures drawn again with the project's beside them, then today's links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from harness.lab.contenders import CONTENDERS
from harness.lab.links import link
from harness.lab.tables import page_table

from ..catalogue import APART, EXPERIMENTS
from ..results import Cell, Results
from . import plots
from .blocks import Block, Details, Heading, Plot, Plots, Row, Table, Text
from .published import CELLS, IMAGES, TEN_PAGES, TEN_PAGES_PAIR_PERCENT
from .special import SPECIAL_SECTIONS
from .tables import cell_table

WHY = "Why they differ."

VISITS = {"cold": "", "warm": ", warm cache", "second": ", a second page of the site"}
"""The words for the visits of one browser, in titles."""

PAPERS_FIRST = (
    "connections", "cells", "gprs", "ten-pages", "images", "one-flight", "shards", "mobility", "today", "saved",
    "field", "quic", "bytes", "just-started", "fec", "next-page", "quick",
)  # fmt: skip


def sections(found: dict[str, tuple[dict[str, Any], Results]]) -> list[Block]:
    """Returns all sections that have results."""
    parts: list[Block] = []
    for name in PAPERS_FIRST:
        if name not in found:
            continue
        text, results = found[name]
        experiment = (EXPERIMENTS | APART).get(name)
        title = experiment.title if experiment else "The quick subset"
        about = experiment.about if experiment else "A few loads, to see that the instrument works."
        parts += [Heading(title, 2), Text(about)]
        if name in SPECIAL_SECTIONS:
            parts += SPECIAL_SECTIONS[name](text)
        parts += {"cells": _cells, "images": _images, "ten-pages": _ten_pages}.get(name, _conditions)(results)
    return parts


def in_order(cells: Sequence[Cell]) -> list[Cell]:
    """Returns the cells in the order of the contenders."""
    order = list(CONTENDERS)
    return sorted(cells, key=lambda cell: order.index(cell.contender) if cell.contender in order else len(order))


def change_percent(results: Results, link_name: str, page: str, contender: str, scheme: str = "http") -> float | None:
    """Returns the change of the load time relative to direct. Negative is faster."""
    cell = results.cell(link_name, page, scheme, contender)
    ratio = results.to_direct(cell) if cell else None
    return None if ratio is None else 100 * (ratio - 1)


def _conditions(results: Results) -> list[Block]:
    """A plot and a table for every link, page, scheme and cache."""
    parts: list[Block] = []
    for link_name, page, scheme, cache in results.conditions():
        cells = in_order([
            cell for cell in results.cells.values()
            if (cell.link, cell.page, cell.scheme, cell.cache) == (link_name, page, scheme, cache)
        ])  # fmt: skip
        parts += [
            Heading(f"{link(link_name).title}: {page} over {scheme}{VISITS[cache]}"),
            Plot(plots.load_times(cells, results), page_table(page).title),
            cell_table(cells, results),
            *_pictures(cells),
        ]
    return parts


def _pictures(cells: Sequence[Cell]) -> list[Block]:
    """Returns the page as each contender's browser showed it."""
    shown = [(cell, run) for cell in cells for run in cell.complete if run.picture]
    plots_of = [
        Plot(
            Markup('<img src="data:image/jpeg;base64,{}" alt="">').format(run.picture),
            f"{plots.title_of(cell.contender)}: {run.bytes_down / 1000:.0f} kB, {run.load_ms / 1000:.1f} s",
        )
        for cell, run in shown
    ]
    return [Plots(plots_of)] if plots_of else []


def _all_loads(results: Results) -> Details:
    return Details("All loads", _conditions(results))


def _cells(results: Results) -> list[Block]:
    """Figures 6 and 7 of WWW 2004."""
    parts: list[Block] = []
    for link_name in dict.fromkeys(cell.link for cell in results.cells.values()):
        labels, ours, theirs = [], [], []
        pages = list(dict.fromkeys(cell.page for cell in results.cells.values() if cell.link == link_name))
        for contender in ("longhaul-paper", "longhaul-url", "longhaul-dns", "longhaul-edge", "longhaul-pair"):
            for page in pages:
                change = change_percent(results, link_name, page, contender)
                if change is not None:
                    labels.append(f"{plots.title_of(contender)}: {page}")
                    ours.append(change)
                    paper = CELLS.get((link_name, contender))
                    theirs.append(tuple(map(float, paper.theirs)) if paper else None)
        if not labels:
            continue
        paper = CELLS[link_name, "longhaul-url"]
        parts += [
            Heading(link(link_name).title),
            Plot(
                plots.beside_paper(labels, ours, theirs, "load time against direct, %"),
                f"Ours as bars, the paper's range over its pages behind them ({paper.source}: {paper.theirs[0]} "
                f"to {paper.theirs[1]} %).",
            ),
            Text(paper.why, lead=WHY),
            *_throughput(results, link_name, pages),
        ]
    return [*parts, _all_loads(results)]


def _throughput(results: Results, link_name: str, pages: list[str]) -> list[Block]:
    """Figure 7: the page's bytes over its load time, beside the rate of one bulk transfer."""
    series: dict[str, tuple[str, list[float]]] = {}
    for contender, fill in (
        ("direct", plots.GREY),
        ("longhaul-paper", plots.PEER),
        ("longhaul-edge", plots.OURS),
        ("longhaul-pair", plots.PAPER),
    ):
        cells = [results.cell(link_name, page, "http", contender) for page in pages]
        if all(cell and cell.load_ms for cell in cells):
            values = [
                page_table(cell.page).total_bytes * 8 / cell.load_ms.median for cell in cells if cell and cell.load_ms
            ]
            series[plots.title_of(contender)] = (fill, values)
    if not series:
        return []
    bulk = link(link_name).payload_bytes_per_ms * 8
    caption = (
        f"Throughput, as in figure 7: bytes of the page over its load time. One bulk transfer (their FTP line) gets "
        f"{bulk:.0f} kbit/s here. Above it is compression. Theirs rose by 36 to 51 % on the average cell and by 93 to "
        "126 % on the congested one."
    )
    return [Plot(plots.groups_of_bars(pages, series, "kbit/s"), caption)]


def _images(results: Results) -> list[Block]:
    """Figures 4 and 5 of HTTPEP."""
    shown = []
    links = list(dict.fromkeys(cell.link for cell in results.cells.values()))
    for link_name in links:
        lines: dict[str, list[Any]] = {}
        bounds = []
        for cell in in_order([cell for cell in results.cells.values() if cell.link == link_name]):
            if middle := cell.load_ms:
                lines.setdefault(cell.contender, []).append((int(cell.page.split("-")[1]), middle))
        for page in sorted({cell.page for cell in results.cells.values()}, key=lambda one: int(one.split("-")[1])):
            if least := results.bound(link_name, page):
                bounds.append((int(page.split("-")[1]), least.ideal_ms))
        for points in lines.values():
            points.sort(key=lambda point: point[0])
        shown.append(Plot(plots.curves(lines, bounds, "images on the page"), link(link_name).title))
    heads = ["link", "theirs, without recompression", "edge", "Envoy pair", "Longhaul pair", "why they differ"]
    rows = []
    for link_name in links:
        paper = IMAGES[link_name]
        ours = (_mean_change(results, link_name, one) for one in ("longhaul-edge", "envoy-pair", "longhaul-pair"))
        rows.append(Row([link_name, f"{paper.theirs[0]:+.0f} %", *ours, paper.why]))
    return [Plots(shown), Table(heads, rows, words=(0, 5)), _all_loads(results)]


def _mean_change(results: Results, link_name: str, contender: str) -> str:
    """The mean over all test pages, as figure 5 has it."""
    pages = {cell.page for cell in results.cells.values() if cell.link == link_name}
    changes = [change for page in pages if (change := change_percent(results, link_name, page, contender)) is not None]
    return f"{sum(changes) / len(changes):+.0f} %" if changes else "–"


def _ten_pages(results: Results) -> list[Block]:
    """Figures 9 and 10 of Gomez et al."""
    pages = list(dict.fromkeys(cell.page for cell in results.cells.values()))
    series: dict[str, tuple[str, list[float]]] = {}
    for contender, fill in (
        ("direct", plots.GREY),
        ("envoy-pair", plots.PEER),
        ("longhaul-edge", plots.OURS),
        ("longhaul-pair", plots.PAPER),
    ):
        cells = [results.cell("umts", page, "http", contender) for page in pages]
        if all(cell and cell.load_ms for cell in cells):
            series[plots.title_of(contender)] = (
                fill,
                [cell.load_ms.median / 1000 for cell in cells if cell and cell.load_ms],
            )
    bounds = [results.bound("umts", page) for page in pages]
    if all(bounds):
        series["ideal"] = (plots.IDEAL, [least.ideal_ms / 1000 for least in bounds if least])
    one, two = _mean_change(results, "umts", "longhaul-edge"), _mean_change(results, "umts", "longhaul-pair")
    labels = [page.removeprefix("ten-") for page in pages]
    bars = plots.groups_of_bars(labels, series, "load time, s")
    return [
        Plot(bars, "As figures 9 and 10: every page beside its ideal."),
        Text(
            f"Against direct, mean over the pages: one box {one} (theirs {TEN_PAGES.theirs[0]:+.0f} %), pair {two} "
            f"(theirs {TEN_PAGES_PAIR_PERCENT:+.0f} %; {TEN_PAGES.source})."
        ),
        Text(TEN_PAGES.why, lead=WHY),
        _all_loads(results),
    ]
