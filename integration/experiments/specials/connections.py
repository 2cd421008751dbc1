"""TCP connections and DNS queries for a hundred pages, one after the other in one browser: figure 5 of WWW 2004."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.browsers.chromium import browser
from harness.host.waiting import Timeout
from harness.lab.bed import standing
from harness.lab.contenders import contender
from harness.lab.pages import make_page
from harness.lab.tables import page_table

from ..plan import Group

SETTLE_S = 0.05
PAGE_TIMEOUT_S = 30.0


def connections(folder: Path, group: Group, seed: int) -> dict[str, Any]:
    """Returns counts on the link. A page that did not load whole is counted, and its number is a figure, too."""
    pages = [make_page(page_table(name)) for name in group.pages]
    everybody = [contender(name) for name in group.contenders]
    figures: dict[str, float] = {}
    with standing(folder, group.link, pages, everybody, seed=seed, weighed=False) as bed:
        track = bed.track
        link = track.line.link
        assert link
        for name, one in bed.contenders.items():
            incomplete = 0
            with one.engaged(track), browser(folder, track.line.clients, track.authority) as fresh:
                link.reset()
                for page in pages:
                    try:
                        load = fresh.load(page.url("http"), timeout_s=PAGE_TIMEOUT_S, settle_s=SETTLE_S)
                        incomplete += len(load.loaded()) < len(page.urls("http"))
                    except Timeout:
                        incomplete += 1
                counted = link.statistics()
            stem = f"hundred_pages_{name.replace('-', '_')}"
            per_hundred = 100 / len(pages)
            figures |= {
                f"{stem}_connections": counted["tcp"]["connections"] * per_hundred,
                f"{stem}_dns_queries": counted["dns"]["queries"] * per_hundred,
                f"{stem}_names_asked_for": len({one["name"] for one in counted["dns"]["list"]}) * per_hundred,
                f"{stem}_incomplete": incomplete,
            }
    return {"figures": figures, "contenders": list(bed.contenders)}
