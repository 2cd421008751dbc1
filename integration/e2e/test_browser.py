"""A real browser behind the gateway: it loads the same objects with Longhaul as without, from the expected hosts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from e2e.bed import TestBed
from harness.boxes.bed import OWN, PROXY_NAME, Bed
from harness.browsers.chromium import Load, browser
from harness.clients.moved import is_moved, true_url
from harness.host.artifacts import corpora, need_commands, scratch
from harness.net.topology import PROXY, leads_to_proxy
from harness.origins.pages import Page
from harness.pictures.screens import compare, save

MOST_DIFFERING = 0.001
"""Share of pixels in which two screenshots of one page may differ: a caret, an animation's frame."""

DEMO_LIST_BEGINS_PX = 1400


@dataclass
class Pair:
    """One page loaded without and with Longhaul, each by a fresh browser."""

    name: str
    url: str
    without: Load
    with_longhaul: Load

    def stayed_hosts(self) -> set[str]:
        """Returns the hosts that the browser requested something from, without the page's own and the proxy."""
        asked = {urlsplit(one.url).hostname or "" for one in self.with_longhaul.requests}
        return asked - {urlsplit(self.url).hostname or "", *OWN}


def load(bed: Bed, folder: Path, url: str) -> Load:
    with browser(folder, bed.topology.clients, bed.authority) as fresh:
        return fresh.load(url)


def pair(bed: Bed, folder: Path, name: str, url: str) -> Pair:
    with_longhaul = load(bed, folder, url)
    with bed.without_longhaul():
        without = load(bed, folder, url)
    shots = scratch("e2e")
    save(without.screenshot, shots / f"{name}-without.png")
    save(with_longhaul.screenshot, shots / f"{name}-with.png")
    return Pair(name, url, without, with_longhaul)


@pytest.fixture(scope="module")
def demo(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    need_commands("chromium", "certutil")
    return pair(bed, tmp_path_factory.mktemp("demo"), "demo-site", "http://www.demo.test/")


@pytest.fixture(scope="module")
def real(bed: TestBed, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    need_commands("chromium", "certutil")
    corpora()
    assert bed.saved_page
    return pair(bed, tmp_path_factory.mktemp("saved"), "saved-page", bed.saved_page.url)


@pytest.fixture(params=["demo", "real"])
def either(request: pytest.FixtureRequest) -> Pair:
    return request.getfixturevalue(request.param)


def test_the_same_set_of_true_urls_loads(either: Pair) -> None:
    without = {one.url for one in either.without.loaded()}
    with_longhaul = {true_url(one.url, OWN) for one in either.with_longhaul.loaded()}
    assert len(without) >= 15
    assert with_longhaul == without


def test_nothing_fails_that_did_not_fail_without(either: Pair) -> None:
    without = {one.url for one in either.without.failed()}
    failed = {true_url(one.url, OWN): one.failure or one.status for one in either.with_longhaul.failed()}
    assert {url: why for url, why in failed.items() if url not in without} == {}


def test_the_console_has_no_complaint_that_it_did_not_have_without(either: Pair) -> None:
    def of_the_page(console: list[str]) -> set[str]:
        return {line.split("\n")[0] for line in console}

    assert of_the_page(either.with_longhaul.console) <= of_the_page(either.without.console)


def test_the_page_looks_the_same(either: Pair) -> None:
    # Further down, the demo site lists the addresses of its objects. This list must differ.
    top_px = DEMO_LIST_BEGINS_PX if either.name == "demo-site" else None
    difference = compare(either.without.screenshot, either.with_longhaul.screenshot, top_px=top_px)
    difference.picture.save(scratch("e2e") / f"{either.name}-difference.png")
    assert difference.differing <= MOST_DIFFERING


def test_moved_objects_come_over_one_http_2_connection(either: Pair) -> None:
    moved = [one for one in either.with_longhaul.loaded() if is_moved(one.url, OWN)]
    assert len(moved) >= 10
    assert {one.protocol for one in moved} == {"h2"}
    assert {one.remote for one in moved} == {f"{PROXY}:443"}
    assert {urlsplit(one.url).hostname for one in moved} == {PROXY_NAME}


def test_of_the_demo_site_only_what_must_stay_is_asked_from_its_own_host(demo: Pair) -> None:
    stayed = {one.url for one in demo.with_longhaul.requests if urlsplit(one.url).hostname in demo.stayed_hosts()}
    assert stayed == {
        "http://static.demo.test/ferry.mjs",
        "http://static.demo.test/timetable.mjs",
        "http://cdn.demo.test/lottery.js",
        "http://ads.demo.test/notice.html",
    }


def test_of_the_saved_page_most_hosts_are_never_asked(real: Pair, saved: Page) -> None:
    hosts = set(saved.hosts()[1:])
    assert len(hosts) >= 6
    assert len(real.stayed_hosts() & hosts) <= len(hosts) / 2


def test_names_that_are_asked_themselves_are_steered_to_the_proxy(demo: Pair) -> None:
    stayed = [one for one in demo.with_longhaul.requests if not is_moved(one.url, OWN)]
    assert all(leads_to_proxy(one.remote.removesuffix(":80")) for one in stayed)
