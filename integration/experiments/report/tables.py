"""The table under each plot."""

from __future__ import annotations

from collections.abc import Sequence

from ..results import Cell, Results
from .plots import title_of


def cell_table(cells: Sequence[Cell], results: Results) -> str:
    """One row a contender: times, ratios, what crossed the link, what failed."""
    head = (
        "<tr><th></th><th class=n>median, s</th><th class=n>quartiles</th><th class=n>to direct</th><th "
        "class=n>to ideal</th>"
        "<th class=n>first byte, s</th><th class=n>kB down</th><th class=n>kB up</th><th class=n>connections</th>"
        "<th class=n>DNS queries</th><th class=n>incomplete</th></tr>"
    )
    return f"<table>{head}{''.join(_row(cell, results) for cell in cells)}</table>"


def _row(cell: Cell, results: Results) -> str:
    ours = ' class="ours"' if cell.contender.startswith("longhaul") else ""
    failed = (
        f"<span class=bad>{len(cell.failed)} of {len(cell.runs)}</span>" if cell.failed else f"0 of {len(cell.runs)}"
    )
    middle = cell.load_ms
    if middle is None:
        none = "<td colspan=9>no complete load</td>"
        return f"<tr{ours}><td>{title_of(cell.contender)}</td>{none}<td class=n>{failed}</td></tr>"
    to_direct, to_ideal = results.to_direct(cell), results.to_ideal(cell)
    values = (
        f"{middle.median / 1000:.2f}", f"{middle.low / 1000:.2f}–{middle.high / 1000:.2f}",
        "" if to_direct is None else f"{to_direct:.2f}", "" if to_ideal is None else f"{to_ideal:.2f}",
        f"{cell.median_of('first_byte_ms') / 1000:.2f}", f"{cell.median_of('bytes_down') / 1000:.0f}",
        f"{cell.median_of('bytes_up') / 1000:.0f}", f"{cell.median_of('connections'):g}",
        f"{cell.median_of('dns_queries'):g}", failed,
    )  # fmt: skip
    return (
        f"<tr{ours}><td>{title_of(cell.contender)}</td>{''.join(f'<td class=n>{value}</td>' for value in values)}</tr>"
    )
