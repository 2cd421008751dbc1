"""Beds of the lab: nobody knows the name of a page before its first load, and a second day has a day before it."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.host.artifacts import built, need_commands, need_root
from harness.host.processes import whole_lines
from harness.lab.bed import WAKE_HOST, LinkBed, standing
from harness.lab.contenders import contender
from harness.lab.contenders.base import LinkContender
from harness.lab.contenders.init_pair import FirstVisit, SecondDay
from harness.lab.links import link
from harness.lab.measure import Run, expecting, measure
from harness.lab.pages import Page, make_page
from harness.lab.tables import page_table

PAGE = make_page(page_table("cnn"))
LIMIT_S = 60
STANDING = ("direct", "longhaul-edge", "longhaul-pair-default")


@contextmanager
def bed_of(*names: str, https: bool, as_shipped: bool = True) -> Iterator[LinkBed]:
    """A bed on the fastest link, or the reason why it cannot stand."""
    need_root()
    need_commands("ip", "nft", "nsenter", "unshare", "sysctl", "curl", "chromium", "certutil")
    for name in ("longhaul", "coredns", "url_rewrite.wasm", "envoy", "origins", "longhaul-link"):
        built(name)
    ways: list[LinkContender] = [contender(name) for name in names]
    # pytest's folder has a long name, which leaves no room for the path of the browser's socket.
    with (
        tempfile.TemporaryDirectory(prefix="longhaul-") as folder,
        standing(
            Path(folder), link("leo"), [PAGE], ways, seed=1, weighed=False, https=https, as_shipped=as_shipped
        ) as bed,
    ):
        yield bed


def events(bed: LinkBed, kind: str) -> list[dict[str, str]]:
    """Returns what arrived at the servers and at their resolver."""
    every = map(json.loads, whole_lines(bed.track.folder / "origins.jsonl"))
    return [one for one in every if one["event"] == kind]


def load(bed: LinkBed, name: str, scheme: str, page: Page = PAGE) -> Run:
    """Loads the page once."""
    (run,) = measure(
        bed.track, page, contender(name), Run("test", "leo", page.name, scheme, name, 1), warm=False, timeout_s=LIMIT_S
    )
    return run


def test_contenders_are_awake_and_no_name_of_a_page_was_looked_up() -> None:
    with bed_of(*STANDING, FirstVisit.name, SecondDay.name, https=True) as bed:
        asked = {one.get("name") for one in events(bed, "query")}
        woken = Counter(one["host"] for one in events(bed, "request"))
    assert not asked & set(PAGE.hosts)
    assert WAKE_HOST in asked
    assert set(woken) == {WAKE_HOST}, "only requests to the server of the bed were made"
    assert woken[WAKE_HOST] >= len(STANDING)


def test_a_second_day_follows_one_first_visit_of_the_same_page() -> None:
    def visits(bed: LinkBed) -> int:
        return sum(one["target"] == "/https.html" for one in events(bed, "request"))

    with bed_of(FirstVisit.name, SecondDay.name, https=True) as bed:
        assert load(bed, FirstVisit.name, "https").problem == ""
        assert visits(bed) == 1
        second = load(bed, SecondDay.name, "https")
        assert (second.problem, second.dns_queries, visits(bed)) == ("", 0, 2), "it took the state of the first visit"
        assert load(bed, SecondDay.name, "https").problem == ""
        assert visits(bed) == 4, "a third day is none, so there was another first visit"


def test_a_browser_with_https_first_loads_an_http_page_of_a_server_without_https() -> None:
    with bed_of("direct", https=False) as bed:
        run = load(bed, "direct", "http")
        tried = [one["local"] for one in events(bed, "connect")]
    assert run.problem == ""
    assert run.objects == run.expected_objects
    assert {one.rpartition(":")[2] for one in tried} == {"80"}
    assert [step.name for step in run.steps[:2]] == ["http.html", "http.html"], "it tried https first"


def test_an_http_page_of_a_server_with_https_is_refused() -> None:
    with (
        bed_of("direct", https=True) as bed,
        pytest.raises(ValueError, match="https-first"),
    ):
        expecting(bed.track, PAGE, contender("direct"), "http", LIMIT_S)
