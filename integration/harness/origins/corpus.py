"""Which saved pages are compared: one of each host, so that each can have the address it had, with objects to move."""

from __future__ import annotations

import csv

from harness.host.artifacts import corpora

from .pages import Page, saved_page

LEAST_OBJECTS = 3
EVERY_HTTPS = 5
"""Each so many-th page is served over https, on a name whose certificate the proxy has."""


def saved_pages() -> list[Page]:
    """The pages, most objects first: a subset taken from the front has the most to lose."""
    with (corpora() / "html" / "page-stats.csv").open(newline="", encoding="utf-8") as rows:
        worth = [row for row in csv.DictReader(rows) if _is_worth_it(row)]
    worth.sort(key=lambda row: (-int(row["objects"]), row["file"]))
    chosen: dict[str, Page] = {}
    for row in worth:
        if row["page_host"] not in chosen:
            page = saved_page(row["file"])
            if len(chosen) % EVERY_HTTPS == EVERY_HTTPS - 1:
                page = saved_page(row["file"], scheme="https")
            chosen[row["page_host"]] = page
    return list(chosen.values())


def _is_worth_it(row: dict[str, str]) -> bool:
    return bool(row["page_host"]) and int(row["objects"]) >= LEAST_OBJECTS and int(row["cross_hosts"]) >= 1
