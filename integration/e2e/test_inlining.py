"""`page.inline`: a real browser behind a satellite link asks for less and shows the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from e2e.bed import SAVED_PAGE
from harness.artifacts import corpora, need_commands
from harness.authority import Authority
from harness.bed import OWN, Bed
from harness.browser import Load, browser
from harness.moved import true_url
from harness.pages import Page, page_site, saved_page
from harness.screens import compare

AT_HAND = b"data:image/"
VISITORS = 8
"""Each worker keeps its own objects, and chance leads visitors to workers."""
MOST_DIFFERING = 0.001


@dataclass
class Place:
    """A bed with objects put into pages, and the page."""

    bed: Bed
    page: Page

    def load(self) -> Load:
        """By a fresh browser."""
        with browser(self.bed.folder, self.bed.topology.clients, self.bed.authority) as fresh:
            return fresh.load(self.page.url, settle_s=1)

    def body(self, *options: str) -> bytes:
        """The page as a browser that does not run its scripts gets it."""
        accept = "Accept: text/html,image/avif,image/webp,*/*;q=0.8"
        answer = self.bed.curl.get(self.page.url, "-H", accept, *options)
        assert answer.status == 200, answer
        return answer.body


@pytest.fixture(scope="module")
def place(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:  # noqa: ARG001 - order of set-up
    need_commands("chromium", "certutil")
    corpora()
    folder, page = tmp_path_factory.mktemp("inlining"), saved_page(*SAVED_PAGE)
    authority = Authority(folder)
    site = page_site(page, ca=authority.files.as_dict())
    with Bed(folder, site, list(page.hosts()), authority, link_profile="geo", page={"inline": True}) as bed:
        yield Place(bed, page)


def urls(load: Load) -> set[str]:
    return {true_url(one.url, OWN) for one in load.loaded()}


def test_a_later_visitors_browser_asks_for_less_and_shows_the_same(place: Place) -> None:
    first = place.load()
    assert not first.failed()
    later = next((load for load in (place.load() for _ in range(VISITORS)) if urls(load) < urls(first)), None)
    assert later is not None, "nothing was ever put into the page"
    assert not later.failed()
    with place.bed.without_longhaul():
        without = place.load()
    assert urls(first) == urls(without)
    assert compare(without.screenshot, later.screenshot).differing <= MOST_DIFFERING


def test_a_visitor_with_a_cookie_gets_urls_whoever_came_before(place: Place) -> None:
    assert any(AT_HAND in place.body() for _ in range(VISITORS)), "at hand"
    for visitor in range(VISITORS):
        assert AT_HAND not in place.body("-H", f"Cookie: visitor={visitor}")
    assert any(AT_HAND in place.body() for _ in range(VISITORS)), "and still is"
