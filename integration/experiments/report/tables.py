"""The table under each plot."""

from __future__ import annotations

from collections.abc import Sequence

from ..results import Cell, Results
from .blocks import Bad, Row, Table
from .plots import title_of

HEADS = (
    "", "median, s", "quartiles", "to direct", "to ideal", "first byte, s", "kB down", "kB up", "connections",
    "DNS queries", "incomplete",
)  # fmt: skip


def cell_table(cells: Sequence[Cell], results: Results) -> Table:
    """Returns one row for each contender: times, ratios, traffic on the link, failures."""
    return Table(HEADS, [_row(cell, results) for cell in cells])


def _row(cell: Cell, results: Results) -> Row:
    looks = "ours" if cell.contender.startswith("longhaul") else ""
    part = f"{len(cell.failed)} of {len(cell.runs)}"
    failed = Bad(part) if cell.failed else part
    middle = cell.load_ms
    if middle is None:
        none = ["no complete load", *[""] * (len(HEADS) - 3)]
        return Row([title_of(cell.contender), *none, failed], looks)
    to_direct, to_ideal = results.to_direct(cell), results.to_ideal(cell)
    values = (
        f"{middle.median / 1000:.2f}", f"{middle.low / 1000:.2f}–{middle.high / 1000:.2f}",
        "" if to_direct is None else f"{to_direct:.2f}", "" if to_ideal is None else f"{to_ideal:.2f}",
        f"{cell.median_of('first_byte_ms') / 1000:.2f}", f"{cell.median_of('bytes_down') / 1000:.0f}",
        f"{cell.median_of('bytes_up') / 1000:.0f}", f"{cell.median_of('connections'):g}",
        f"{cell.median_of('dns_queries'):g}",
    )  # fmt: skip
    return Row([title_of(cell.contender), *values, failed], looks)
