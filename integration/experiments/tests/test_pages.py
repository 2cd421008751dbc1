"""Pages match their tables, and the tables match the papers."""

from __future__ import annotations

import re
import zlib

import pytest

from harness.lab.pages import make_page, second_page
from harness.lab.tables import page_table, page_tables

PUBLISHED = {
    # name: objects beside the page, hosts, bytes
    "cnn": (58, 6, 197_000),
    "yahoo": (16, 3, 74_000),
    "britannica": (32, 15, 178_000),
    "ten-cnn": (72, 3, 285_580),
    "ten-t-mobile": (11, 3, 144_160),
    "ten-nasa": (53, 3, 330_430),
    "images-1": (1, 1, 20_000),
    "images-30": (30, 1, 310_000),
    "median-2025": (72, 14, 2_862_000),
    "lab-modern": (73, 14, 2_862_000),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_page_has_the_objects_hosts_and_bytes_that_were_published(name: str) -> None:
    page = make_page(page_table(name))
    markup = page.markup("http")
    weight = len(zlib.compress(markup, 6)) if page.table.compressed else len(markup)
    objects, hosts, total_bytes = PUBLISHED[name]
    assert len(page.objects) == objects
    assert {one.host for one in page.objects} | {page.table.host} == set(page.hosts)
    assert len(page.hosts) == hosts
    assert weight + sum(one.size_bytes for one in page.objects) == pytest.approx(total_bytes, rel=0.01)


@pytest.mark.parametrize("name", [name for name, table in page_tables().items() if not table.saved])
def test_every_object_of_a_page_stands_in_its_markup_once_and_under_the_scheme_of_the_page(name: str) -> None:
    page = make_page(page_table(name))
    for scheme in ("http", "https"):
        found = re.findall(rb'(?:src|href)="(https?:[^"]+)"|url\((https?:[^)]+)\)', page.markup(scheme))
        urls = [(attribute or sheet).decode() for attribute, sheet in found]
        assert sorted(urls) == sorted(page.urls(scheme)[1:])


def test_a_page_is_the_same_in_every_run_and_another_page_is_another() -> None:
    first, again = make_page(page_table("cnn")), make_page(page_table("cnn"))
    assert first == again
    assert first.markup("http") == again.markup("http")
    assert make_page(page_table("ten-cnn")).objects != first.objects


def test_a_second_page_shares_with_the_first_one_what_pages_of_a_site_share() -> None:
    first = make_page(page_table("cnn"))
    second = second_page(first)
    shared = set(first.urls("http")) & set(second.urls("http"))
    kinds = [one.kind for one in second.objects if f"http://{one.host}{one.path}" in shared]
    assert {kind: kinds.count(kind) for kind in kinds} == {"css": 1, "script": 3, "gif": 24, "jpeg": 13}
    assert len(second.markup("http")) == len(first.markup("http"))
    known = set(first.markup("http").splitlines())
    lines = second.markup("http").splitlines()
    assert sum(len(line) for line in lines if line in known) / sum(map(len, lines)) == pytest.approx(0.66, abs=0.02)


def test_a_hundred_pages_ask_for_three_hundred_names() -> None:
    pages = [table for name, table in page_tables().items() if name.startswith("hundred-")]
    assert len(pages) == 100
    assert sum(page.hosts for page in pages) == 300


def test_every_page_says_where_its_numbers_come_from() -> None:
    assert all(len(table.source) > 80 and table.title for table in page_tables().values())
