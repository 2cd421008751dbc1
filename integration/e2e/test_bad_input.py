"""Pages whose bytes differ from their declaration. The client gets the origin's bytes, or a rewritten prefix and the
rest unchanged."""

from __future__ import annotations

import gzip

import pytest

from e2e.bed import OBJECTS, made_to_order
from harness.boxes.bed import OWN, PROXY_NAME, Bed
from harness.clients.moved import put_back

MOVED = f"https://{PROXY_NAME}/{OBJECTS}/".encode()


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ({"body": "noise", "type": "text/html", "size": 60000}, "not HTML at all"),
        ({"type": "text/html; charset=utf-16"}, "a charset in which ASCII is not ASCII"),
        ({"type": "text/html; charset=iso-2022-jp"}, "a charset with shift states"),
        ({"type": "application/octet-stream"}, "not declared as a page"),
        ({"type": "text/plain"}, "text that looks like a page"),
        ({"type": "none"}, "no type at all"),
        ({"body": "none"}, "empty"),
        ({"declare": "x-unheard-of"}, "a coding nobody knows"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_pages_that_cannot_be_rewritten_arrive_byte_for_byte(bed: Bed, order: dict[str, str | int], why: str) -> None:
    url = made_to_order(**({"host": OBJECTS} | order))
    got, original = bed.curl.get(url), bed.original(url)
    assert (got.status, got.problem) == (200, ""), why
    assert got.body == original.body, why
    for name in ("content-type", "content-encoding"):
        assert got.header(name) == original.header(name), why


@pytest.mark.parametrize("charset", ["windows-1252", "shift_jis", "gb18030", "koi8-r", "utf-8"])
def test_a_charset_that_contains_ascii_is_rewritten(bed: Bed, charset: str) -> None:
    url = made_to_order(host=OBJECTS, type=f"text/html; charset={charset}")
    got = bed.curl.get(url)
    assert MOVED in got.body
    assert put_back(got.body, OWN) == bed.original(url).body


@pytest.mark.parametrize("label", ["x-unheard-of", "utf-7"])
def test_a_charset_nobody_knows_declares_nothing_as_in_browsers_and_the_page_loses_no_byte(
    bed: Bed, label: str
) -> None:
    url = made_to_order(host=OBJECTS, type=f"text/html; charset={label}")
    got = bed.curl.get(url)
    assert MOVED in got.body
    assert put_back(got.body, OWN) == bed.original(url).body


@pytest.mark.parametrize("status", [201, 404, 500])
def test_a_page_with_another_status_keeps_it(bed: Bed, status: int) -> None:
    url = made_to_order(host=OBJECTS, status=status)
    got = bed.curl.get(url)
    assert got.status == status
    assert put_back(got.body, OWN) == bed.original(url).body


def test_an_answer_without_a_body_has_none(bed: Bed) -> None:
    got = bed.curl.get(made_to_order(host=OBJECTS, status=204))
    assert (got.status, got.body, got.problem) == (204, b"", "")


@pytest.mark.parametrize("size", [1, 700, 60000])
def test_a_page_that_breaks_off_is_a_prefix_and_the_client_can_tell(bed: Bed, size: int) -> None:
    url = made_to_order(host=OBJECTS, size=100000, cut=size)
    got, original = bed.curl.get(url), bed.original(url)
    assert original.problem
    assert got.problem, "a page cut short must not look whole"
    assert original.body.startswith(put_back(got.body, OWN))


def test_a_page_of_50_mb_arrives_whole_and_does_not_fill_the_memory(bed: Bed) -> None:
    size = 50 * 1024 * 1024
    before = bed.pep.metrics()["envoy_server_memory_allocated{}"]
    url = made_to_order(host=OBJECTS, size=size)
    got = bed.curl.get(url, timeout_s=60)
    assert (got.status, got.problem) == (200, "")
    assert len(put_back(got.body, OWN)) == size
    assert put_back(got.body, OWN) == bed.original(url).body
    assert bed.pep.metrics()["envoy_server_memory_allocated{}"] - before < 64 * 1024 * 1024


@pytest.mark.parametrize("accepted", ["gzip, br", "gzip", "identity"])
def test_gzip_that_lies_loses_no_byte(bed: Bed, accepted: str) -> None:
    url = made_to_order(host=OBJECTS, declare="gzip", size=5000)
    got, original = bed.curl.get(url, "--compressed", "-H", f"Accept-Encoding: {accepted}"), bed.original(url)
    assert (got.status, got.problem) == (200, "")
    assert MOVED in got.body
    assert put_back(got.body, OWN) == original.body


def test_gzip_that_ends_early_gives_what_it_holds(bed: Bed) -> None:
    whole = made_to_order(host=OBJECTS, size=200000, encode="gzip")
    length = len(bed.original(whole).body)
    got = bed.curl.get(whole + f"&cut={length // 2}")
    page = gzip.decompress(bed.original(whole).body)
    assert page.startswith(put_back(got.body, OWN))
    assert got.problem, "a page cut short must not look whole"
