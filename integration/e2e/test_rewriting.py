"""Responses to a client behind the gateway, by curl: objects are moved to the proxy, and each of their bytes is
unchanged."""

from __future__ import annotations

import gzip
import re

import pytest

from e2e.bed import LAB, OBJECTS, fresh, made_to_order
from harness.boxes.bed import OWN, PROXY_NAME, Bed
from harness.clients.commands import Answer
from harness.clients.moved import is_moved, put_back, same_markup, true_url
from harness.net.topology import PROXY
from harness.origins.pages import Page, objects_of

DEMO = "http://www.demo.test/"

DEMO_MOVES = {
    "http://cdn.demo.test/favicon.ico",
    "http://cdn.demo.test/touch-icon.png",
    "http://cdn.demo.test/paper.png",
    "http://cdn.demo.test/poster.jpg",
    "http://static.demo.test/lantern.css",
    "http://static.demo.test/tide.js",
    "http://static.demo.test/trace.js",
    "http://img.demo.test/harbour-960.jpg",
    "http://img.demo.test/harbour-480.jpg",
    "http://img.demo.test/island.png",
    "http://img.demo.test/island-2x.png",
    "http://img.demo.test/dish.jpg",
    "http://ads.demo.test/bakery.png",
    "http://ads.demo.test/bakery-small.gif",
}
DEMO_STAYS = {
    "http://static.demo.test/ferry.mjs": "a module",
    "http://cdn.demo.test/lottery.js": "has an integrity hash",
    "http://ads.demo.test/notice.html": "a document in a frame",
}


def page(answer: Answer) -> str:
    assert answer.status == 200, answer
    assert not answer.problem
    return answer.body.decode("latin-1")


def test_a_client_that_knows_nothing_of_the_proxy_gets_the_demo_page_with_its_objects_moved(bed: Bed) -> None:
    markup = page(bed.curl.get(DEMO))
    asked = {one.url for one in objects_of(markup, DEMO)}
    assert {true_url(url, OWN) for url in asked if is_moved(url, OWN)} == DEMO_MOVES
    assert {url for url in asked if not is_moved(url, OWN)} == set(DEMO_STAYS)


def test_moved_objects_are_on_the_secure_name(bed: Bed) -> None:
    moved = [one.url for one in objects_of(page(bed.curl.get(DEMO)), DEMO) if is_moved(one.url, OWN)]
    assert {url.split("/")[2] for url in moved} == {PROXY_NAME}
    assert all(url.startswith("https://") for url in moved)


def test_nothing_but_the_objects_of_the_demo_page_changes(bed: Bed) -> None:
    markup = put_back(bed.curl.get(DEMO).body, OWN)
    # The page's only scheme-relative URL is restored with the page's scheme written out.
    assert markup == bed.original(DEMO).body.replace(b'"//ads.demo.test', b'"http://ads.demo.test')


def test_every_object_of_the_demo_page_fetched_from_the_proxy_is_the_original(bed: Bed) -> None:
    moved = [one.url for one in objects_of(page(bed.curl.get(DEMO)), DEMO) if is_moved(one.url, OWN)]
    assert len(moved) == len(DEMO_MOVES)
    for url in moved:
        assert_same_object(bed, url)


def test_every_object_of_a_saved_page_on_many_hosts_fetched_from_the_proxy_is_the_original(
    bed: Bed, saved: Page
) -> None:
    assert len(saved.hosts()) >= 7, "the page and at least six hosts of objects"
    answer = bed.curl.get(saved.url)
    moved = [one.url for one in objects_of(page(answer), saved.url) if is_moved(one.url, OWN)]
    hosts = {url.split("/")[3] for url in moved}
    assert len(hosts) >= 6, hosts
    for url in moved:
        assert_same_object(bed, url)
    assert same_markup(put_back(answer.body, OWN), bed.original(saved.url).body)


def assert_same_object(bed: Bed, url: str) -> None:
    got, original = bed.curl.get(url), bed.original(true_url(url, OWN))
    assert (got.status, got.problem) == (200, ""), f"{url}: {got}"
    assert got.body == original.body, url
    assert got.header("content-type") == original.header("content-type"), url


def test_objects_on_the_page_s_own_host_stay(bed: Bed) -> None:
    url = made_to_order(host=[LAB, OBJECTS])
    markup = page(bed.curl.get(url))
    asked = {one.url for one in objects_of(markup, url)}
    assert f"http://{LAB}/made/0.png" in asked
    assert f"https://{PROXY_NAME}/{OBJECTS}/made/1.png" in asked


def test_links_to_other_pages_stay(bed: Bed) -> None:
    markup = page(bed.curl.get(made_to_order(host=OBJECTS)))
    assert f'<a href="http://{OBJECTS}/made/0.html">' in markup


def test_a_sheet_is_rewritten_where_it_is_served_and_its_relative_urls_work_from_there(bed: Bed) -> None:
    moved = f"https://{PROXY_NAME}/static.demo.test/type.css"
    sheet = bed.curl.get(moved)
    assert f"url(https://{PROXY_NAME}/cdn.demo.test/paper.png)".encode() in sheet.body
    assert put_back(sheet.body, OWN) == bed.original("http://static.demo.test/type.css").body
    assert_same_object(bed, f"https://{PROXY_NAME}/static.demo.test/pictures/knot.svg")


def test_the_origin_gets_its_own_name_and_no_field_of_the_proxy(bed: Bed) -> None:
    path = f"/{fresh()}.png"
    bed.curl.get(
        f"https://{PROXY_NAME}/{OBJECTS}{path}",
        "-H", f"Referer: https://{PROXY_NAME}/{OBJECTS}/style/a.css",
        "-H", "Cookie: session=secret",
        "-H", "Authorization: Basic c2VjcmV0",
        "-H", "X-Longhaul-Scheme: https",
        "-H", "X-Longhaul-Anything: 1",
    )  # fmt: skip
    request = bed.origins.wait_for_request(host=OBJECTS, target=path)
    header = {name.lower(): values for name, values in request["header"].items()}
    assert request["scheme"] == "http"
    assert "cookie" not in header
    assert "authorization" not in header
    assert header["referer"] == [f"http://{OBJECTS}/style/a.css"]
    ours = [name for name in header if name.startswith(("x-longhaul", "x-envoy", "x-forwarded", "x-request-id"))]
    assert ours == []


def test_a_referer_tells_another_site_no_more_than_a_browser_would(bed: Bed) -> None:
    path = f"/{fresh()}.png"
    referer = f"https://{PROXY_NAME}/static.demo.test/lantern.css"
    bed.curl.get(f"https://{PROXY_NAME}/{OBJECTS}{path}", "-H", f"Referer: {referer}")
    request = bed.origins.wait_for_request(host=OBJECTS, target=path)
    assert request["header"]["Referer"] == ["http://static.demo.test/"]


def test_a_page_s_own_requests_keep_their_cookies_and_authorization(bed: Bed) -> None:
    path = f"/{fresh()}.html"
    bed.curl.get(f"http://{LAB}{path}", "-H", "Cookie: session=mine", "-H", "Authorization: Basic bWluZQ==")
    header = bed.origins.wait_for_request(host=LAB, target=path)["header"]
    assert header["Cookie"] == ["session=mine"]
    assert header["Authorization"] == ["Basic bWluZQ=="]


def test_cookies_come_from_pages_but_not_from_the_proxy_origin(bed: Bed) -> None:
    cookie = ["Set-Cookie:a=b; Path=/", 'Clear-Site-Data:"cache"', "Strict-Transport-Security:max-age=1"]
    assert bed.curl.get(made_to_order(header=cookie)).header("set-cookie") == "a=b; Path=/"
    order = made_to_order(OBJECTS, body="noise", type="image/jpeg", header=cookie).removeprefix("http://")
    moved = bed.curl.get(f"https://{PROXY_NAME}/{order}")
    assert moved.status == 200
    for name in ("set-cookie", "clear-site-data", "strict-transport-security"):
        assert moved.header(name) is None, name


def test_every_answer_of_the_proxy_origin_is_nobody_s_home(bed: Bed) -> None:
    for target in (f"/{OBJECTS}/a.png", f"/{OBJECTS}/a.css"):
        answer = bed.curl.get(f"https://{PROXY_NAME}{target}")
        assert "sandbox" in (answer.header("content-security-policy") or ""), target
        assert answer.header("x-content-type-options") == "nosniff"
        assert answer.header("cross-origin-resource-policy") == "cross-origin"
    assert bed.curl.get(DEMO).header("content-security-policy") is None


def test_the_proxy_s_name_is_an_open_redirect(bed: Bed) -> None:
    target = f"https://{PROXY_NAME}/{OBJECTS}/a.html?b=%22c"
    navigation = ("-H", "Sec-Fetch-Dest: document", "-H", "Sec-Fetch-Mode: navigate")
    answer = bed.curl.get(target, *navigation)
    assert (answer.status, answer.header("location")) == (403, None)
    assert f'href="https://{OBJECTS}/a.html?b=%22c"'.encode() in answer.body, answer.body
    assert answer.header("content-type") == "text/html; charset=utf-8"
    assert (answer.header("content-security-policy") or "").startswith("default-src 'none'")
    assert (answer.header("referrer-policy"), answer.header("x-robots-tag")) == ("no-referrer", "noindex")
    elsewhere = bed.curl.get(target, *navigation, "-H", "Referer: https://mail.example/")
    assert (elsewhere.status, elsewhere.header("location")) == (403, None)
    own = bed.curl.get(target, *navigation, "-H", f"Referer: http://{OBJECTS}/")
    assert (own.status, own.header("location")) == (307, f"http://{OBJECTS}/a.html?b=%22c")


@pytest.mark.parametrize("destination", ["iframe", "worker", "serviceworker", "embed", "object"])
def test_a_frame_or_worker_on_the_proxy_origin_is_sent_to_the_true_url(bed: Bed, destination: str) -> None:
    answer = bed.curl.get(f"https://{PROXY_NAME}/{OBJECTS}/a.html?b=c", "-H", f"Sec-Fetch-Dest: {destination}")
    assert (answer.status, answer.header("location")) == (307, f"http://{OBJECTS}/a.html?b=c")


def test_the_secure_name_speaks_http_2(bed: Bed) -> None:
    assert bed.curl.get(f"https://{PROXY_NAME}/{OBJECTS}/a.png").version == "2"


def test_an_object_may_be_requested_at_the_http_address_too(bed: Bed) -> None:
    assert_same_object(bed, f"http://{PROXY}/{OBJECTS}/plain.png")


def test_an_https_object_is_fetched_over_https(bed: Bed) -> None:
    url = f"https://{PROXY_NAME}/{OBJECTS}:443/{fresh()}.png"
    assert_same_object(bed, url)
    assert bed.origins.requests(host=OBJECTS, target="/" + url.rsplit("/", 1)[1])[0]["scheme"] == "https"


def test_an_https_page_passes_through_untouched_with_its_own_certificate(bed: Bed) -> None:
    url = made_to_order(host=[OBJECTS]).replace("http://", "https://", 1)
    answer, original = bed.curl.get(url), bed.original(url)
    assert answer.version == "2"
    assert answer.body == original.body
    assert PROXY_NAME.encode() not in answer.body


def test_pages_leave_compressed_as_the_client_can_take_them(bed: Bed) -> None:
    plain = bed.curl.get(DEMO).body
    zipped = bed.curl.get(DEMO, "-H", "Accept-Encoding: gzip")
    assert zipped.header("content-encoding") == "gzip"
    assert gzip.decompress(zipped.body) == plain
    assert bed.curl.get(DEMO, "-H", "Accept-Encoding: gzip, br").header("content-encoding") == "br"
    assert bed.curl.get(DEMO).header("content-encoding") is None


@pytest.mark.parametrize("name", ["x.js", "x.css", "x.svg", "x.json"])
@pytest.mark.parametrize("coding", ["gzip", "br"])
def test_text_of_every_kind_leaves_compressed_at_the_first_request_and_from_the_cache(
    bed: Bed, name: str, coding: str
) -> None:
    # The name of a generated object determines its size. A fresh name may give an object too small to compress.
    url = f"https://{PROXY_NAME}/{OBJECTS}/packed/{coding}/{name}"
    for _ in range(2):
        answer = bed.curl.get(url, "-H", f"Accept-Encoding: {coding}")
        assert answer.header("content-encoding") == coding
        assert len(answer.body) < len(bed.curl.get(url).body) / 2


def test_pictures_are_not_compressed_again(bed: Bed) -> None:
    answer = bed.curl.get(f"https://{PROXY_NAME}/{OBJECTS}/photo.jpg", "-H", "Accept-Encoding: gzip, br")
    assert answer.header("content-encoding") is None


def test_a_page_in_gzip_is_decompressed_before_it_is_rewritten(bed: Bed) -> None:
    url = made_to_order(host=OBJECTS, encode="gzip")
    assert bed.original(url).header("content-encoding") == "gzip"
    assert PROXY_NAME in page(bed.curl.get(url))


def test_a_page_in_unrequested_brotli_passes_unchanged(bed: Bed) -> None:
    url = made_to_order(host=OBJECTS, encode="br")
    original, answer = bed.original(url), bed.curl.get(url, "-H", "Accept-Encoding: gzip, br")
    assert original.header("content-encoding") == answer.header("content-encoding") == "br"
    assert answer.body == original.body


def test_a_page_flows_chunk_by_chunk(bed: Bed) -> None:
    gate = fresh()
    url = made_to_order(host=OBJECTS, size=4000, chunk=1000, gate=gate)

    def lets_one_more_go(_: bytes) -> None:
        assert bed.original(f"http://{LAB}/_/open?gate={gate}").status == 204

    # The origin sends a chunk only after a part of the chunk before has arrived. A chunk held back would stop the rest.
    parts = bed.curl.stream(url, came=lets_one_more_go)
    body = b"".join(part for _, part in parts)
    assert len(parts) >= 4
    assert put_back(body, OWN) == bed.original(url).body


def test_ranges_heads_and_conditions_are_the_origin_s(bed: Bed) -> None:
    url = f"https://{PROXY_NAME}/{OBJECTS}/range.jpg"
    whole = bed.curl.get(url)
    part = bed.curl.get(url, "-H", "Range: bytes=100-199")
    assert (part.status, part.body) == (206, whole.body[100:200])
    head = bed.curl.get(url, "--head")
    assert (head.status, head.header("content-length")) == (200, str(len(whole.body)))
    same = bed.curl.get(url, "-H", f"If-None-Match: {whole.header('etag')}")
    assert (same.status, same.body) == (304, b"")


def test_a_pages_policy_allows_moved_urls_as_it_did_the_originals(bed: Bed) -> None:
    answer = bed.curl.get(made_to_order(host=OBJECTS, header=f"Content-Security-Policy:img-src {OBJECTS}"))
    policy = answer.header("content-security-policy") or ""
    if is_moved_somewhere(answer.body):
        assert re.search(rf"img-src [^;]*https://{re.escape(PROXY_NAME)}/{re.escape(OBJECTS)}/", policy), policy
    else:
        assert policy == f"img-src {OBJECTS}"


def is_moved_somewhere(body: bytes) -> bool:
    return PROXY_NAME.encode() in body


def test_no_transform_is_obeyed(bed: Bed) -> None:
    url = made_to_order(host=OBJECTS, header="Cache-Control:no-transform")
    assert bed.curl.get(url).body == bed.original(url).body
