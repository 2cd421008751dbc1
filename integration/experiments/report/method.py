"""The origin of the figures: the method, and every link, page and contender with its source."""

from __future__ import annotations

from typing import Any

from harness.lab.contenders import CONTENDERS
from harness.lab.links import link
from harness.lab.tables import page_table

from ..results import Results
from .blocks import Block, Details, Heading, Row, Table, Text

METHOD = """
A real Chromium for every load, with an empty profile, in a network namespace; a link emulator that sends each packet
at the link's rate and delay, and counts it; origins of our own, on an address for each host name, with valid objects
of the published sizes. Load time is the browser's own, from navigation to the end of the load event. A load that
lacks an object counts as failed and enters no median. Contenders take turns within one run, in an order drawn anew
each round; each that stands had one small request before, to a server of the bed, and keeps its caches, as a box that
serves others does. Behind the gateway there is no delay, which leaves out what a box near the origins saves or costs.
Origins send with BBR, what serves direct best. The ideal is the download protocol of Gomez et al., section 6.3: a
lookup, a handshake, a request and the bytes at the link's rate; a pair may beat it, as its connections stand and
names are looked up behind it."""


def method(found: dict[str, tuple[dict[str, Any], Results]]) -> list[Block]:
    """Returns the section."""
    cells = [cell for _, results in found.values() for cell in results.cells.values()]
    runs = [run for cell in cells for run in cell.runs]
    lateness_ms = max((run.lateness_p99_ms for run in runs), default=0.0)
    doubts = sorted({doubt for run in runs for doubt in run.doubts})
    links = [link(name) for name in dict.fromkeys(cell.link for cell in cells)]
    pages = [page_table(name) for name in dict.fromkeys(cell.page for cell in cells)]
    names = {cell.contender: CONTENDERS.get(cell.contender) for cell in cells}
    rows = [
        *(Row([one.name, one.title, one.source]) for one in links),
        *(Row([one.name, one.title, one.source]) for one in pages),
        *(Row([name, one.title, one.about]) for name, one in names.items() if one),
    ]
    verdict = f"Doubts: {'; '.join(doubts)}." if doubts else "Nothing speaks against believing the instrument."
    return [
        Heading("Method", 2),
        Text(METHOD),
        Text(
            f"The emulator's own lateness was at most {lateness_ms:.1f} ms (99th percentile of the worst load). "
            f"{verdict}"
        ),
        Details(
            "Links, pages and contenders, with sources",
            [Table(["name", "title", "source"], rows, words=(0, 1, 2))],
        ),
    ]
