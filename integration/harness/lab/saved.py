"""Saved pages of the web as pages of experiments: the markup as it was, its objects made by the bed's origins.

Only a browser knows which objects of the markup it requests: a candidate of a srcset, an image behind a media query, an
object that a script adds. So the page is loaded twice, directly, before any turn. Every contender must load the objects
that loaded both times. URLs with a random number in them do not.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from harness.browsers.chromium import Load
from harness.clients.moved import true_url
from harness.origins.pages import saved_page
from harness.origins.program import Site

from .contenders import contender
from .contenders.base import LinkTrack
from .ideal import Weight
from .tables import PageTable


class SavedPage:
    """One saved page. Call `learn` before it is measured."""

    def __init__(self, table: PageTable) -> None:
        """Raises Missing if the corpora are not there."""
        self.table = table
        self._page = saved_page(table.saved, table.host)
        self._learnt: dict[str, list[str]] = {}

    @property
    def name(self) -> str:
        """The name of its table."""
        return self.table.name

    def url(self, scheme: str) -> str:
        """The URL of the page, for one scheme."""
        return f"{scheme}://{self.table.host}/"

    @property
    def hosts(self) -> list[str]:
        """Its hosts, its own first."""
        return self._page.hosts()

    def urls(self, scheme: str) -> list[str]:
        """The URLs that a browser loads for it. Before `learn`, only that of the page."""
        return self._learnt.get(scheme, [self.url(scheme)])

    def add_to(self, site: Site, folder: Path, addresses: Iterator[str]) -> None:  # noqa: ARG002 - as of made pages
        """Gives its hosts a place in the site."""
        self._page.add_to(site, addresses)

    def learn(self, track: LinkTrack, schemes: tuple[str, ...], timeout_s: float) -> Weight:
        """Loads it directly, twice for each scheme. Returns the weight of the last load, with headers."""
        direct = contender("direct")
        weight = 0
        for scheme, again in itertools.product(schemes, (False, True)):
            with direct.engaged(track), track.browser() as fresh:
                load = fresh.load(self.url(scheme), timeout_s=timeout_s, settle_s=2 * track.link.rtt_ms / 1000)
            loaded = _loaded(load, scheme)
            self._learnt[scheme] = sorted(loaded & set(self._learnt[scheme])) if again else sorted(loaded)
            weight = sum(one.bytes_on_wire for one in load.loaded())
        return Weight(weight, weight)


def _loaded(load: Load, scheme: str) -> set[str]:
    """Every http or https URL that loaded, once, all under one scheme."""
    urls = (true_url(one.url, ()).split("://", 1) for one in load.loaded())
    return {f"{scheme}://{rest}" for found, rest in urls if found in ("http", "https")}
