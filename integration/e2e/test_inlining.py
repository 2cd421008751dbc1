"""`page.inline`: a real browser sends fewer requests and shows the same page. The link is a cable; no test measures
time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from e2e.bed import SAVED_PAGE
from harness.artifacts import corpora, need_commands
from harness.authority import Authority
from harness.bed import OWN, Bed
from harness.browser import Load, browser, visitor
from harness.moved import true_url
from harness.origins import Site
from harness.pages import Page, page_site, saved_page
from harness.screens import compare
from harness.topology import RESOLVER, SITES

AT_HAND = b"data:image/"
VISITORS = 8
"""Each worker keeps its own objects, and visitors reach workers at random."""
MOST_DIFFERING = 0.001

TEXTS = "http://www.texts.example.org/"
"""A page whose style sheets and scripts depend on their order. It writes the result to the console."""
PROTECTED = "http://www.texts.example.org/protected.html"
"""The same kind of page, with a policy against inline scripts and styles."""
POLICY = "default-src http: https: data:"

ORDER = """<!doctype html><html><head><meta charset="utf-8"><title>Order</title><link rel="icon" href="data:,">
<script>var order = ["inline 1"]</script>
<link rel="stylesheet" href="http://static.texts.example.net/css/a.css" media="screen">
<script src="http://static.texts.example.net/1.js"></script>
<script>order.push("inline 2 after " + order.length)</script>
<link rel=stylesheet href=http://static.texts.example.net/css/b.css>
</head><body><h1>Order \u00fc</h1><p class="picture"></p>
<script type="text/javascript" src="http://static.texts.example.net/2.js"></script>
<script>order.push("inline 3")
addEventListener("load", () => {
  const style = getComputedStyle(document.querySelector("h1")), box = getComputedStyle(document.querySelector("p"))
  order.push(style.color, style.marginLeft, style.fontSize, box.width, getComputedStyle(written, "::after").content)
  console.warn(order.join(", "))
  document.body.append(order.join(", "))
})</script></body></html>
"""
STATIC = {
    "/css/a.css": '@import "more.css"; h1 { color: rgb(1, 2, 3); margin-left: 3px } '
    ".picture { width: 50px; height: 50px; background: url(../picture.svg) }",
    "/css/more.css": "h1 { color: red; font-size: 33px }",
    "/css/b.css": 'h1 { margin-left: 7px } #written::after { content: "\u00fc" }',
    "/1.js": "order.push('external 1 after ' + order.length)",
    "/2.js": "order.push('external 2 after ' + order.length); document.write('<i id=written>written</i>')",
    "/picture.svg": '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0h50v50z" fill="#123456"/></svg>',
    "/protected.css": "h1 { color: rgb(1, 2, 3) }",
    "/protected.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>',
}
TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass
class Place:
    """A bed that inlines objects, and the page."""

    bed: Bed
    page: Page
    visitors: Iterator[int] = field(default_factory=itertools.count)

    def load(self, url: str | None = None) -> Load:
        """Loads a URL with a fresh browser as a new visitor."""
        flags = visitor(next(self.visitors))
        with browser(self.bed.folder, self.bed.topology.clients, self.bed.authority, flags=flags) as fresh:
            return fresh.load(url or self.page.url, settle_s=1)

    def body(self, *options: str, url: str | None = None, name: str | None = None) -> bytes:
        """Returns the page as a browser gets it before it runs scripts. The visitor is new, or the one called
        `name`."""
        accept = "Accept: text/html,image/avif,image/webp,*/*;q=0.8"
        name = name or f"visitor {next(self.visitors)}"
        answer = self.bed.curl.get(url or self.page.url, "-H", accept, "--user-agent", name, *options)
        assert answer.status == 200, answer
        return answer.body


@pytest.fixture(scope="module")
def place(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:  # noqa: ARG001 - order of set-up
    need_commands("chromium", "certutil")
    corpora()
    folder, page = tmp_path_factory.mktemp("inlining"), saved_page(*SAVED_PAGE)
    authority = Authority(folder)
    site = page_site(page, ca=authority.files.as_dict())
    _add_texts(site, folder)
    steered = [*page.hosts(), "texts.example.org", "texts.example.net"]
    sections = {"page": {"inline": True}, "rewrite": {"level": "full"}}
    with Bed(folder, site, steered, authority, **sections) as bed:
        yield Place(bed, page)


def _add_texts(site: Site, folder: Path) -> None:
    taken = {host["address"] for host in site.hosts.values()} | {RESOLVER}
    addresses = (str(one) for one in SITES.hosts() if str(one) not in taken)

    def served(name: str, text: str, **header: str) -> dict[str, object]:
        path = folder / name.strip("/").replace("/", "-")
        path.write_text(text)
        return {"file": str(path), "header": header}

    html = {"Content-Type": "text/html"}
    protected = (
        "<!doctype html><title>Protected</title><link rel=stylesheet href=http://static.texts.example.net/protected.css>"
        "<h1>Protected</h1><img src=http://static.texts.example.net/protected.svg>"
    )
    pages = {
        "/": served("order.html", ORDER, **html),
        "/protected.html": served("protected.html", protected, **html, **{"Content-Security-Policy": POLICY}),
    }
    objects = {
        path: served(path, text, **{"Content-Type": TYPES[Path(path).suffix], "Cache-Control": "max-age=600"})
        for path, text in STATIC.items()
    }
    site.hosts["www.texts.example.org"] = {"address": next(addresses), "objects": pages}
    site.hosts["static.texts.example.net"] = {"address": next(addresses), "objects": objects}


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
    for number in range(VISITORS):
        assert AT_HAND not in place.body("-H", f"Cookie: visitor={number}")
    assert any(AT_HAND in place.body() for _ in range(VISITORS)), "and still is"


def test_sheets_and_scripts_in_the_page_do_the_same_in_the_same_order(place: Place) -> None:
    assert place.load(TEXTS).console
    loads = (place.load(TEXTS) for _ in range(VISITORS))
    scripts = {"http://static.texts.example.net/1.js", "http://static.texts.example.net/2.js"}
    later = next((load for load in loads if not urls(load) & scripts), None)
    assert later is not None, "they were never put into the page"
    with place.bed.without_longhaul():
        without = place.load(TEXTS)
    assert len(without.console) == 1
    assert later.console == without.console
    assert compare(without.screenshot, later.screenshot).differing == 0
    put_in = scripts | {f"http://static.texts.example.net/css/{name}.css" for name in "ab"}
    assert urls(without) - urls(later) == put_in, "what the sheets ask for is asked for by its true URL"


def test_a_page_whose_policy_forbids_texts_gets_pictures_alone(place: Place) -> None:
    body = next((body for body in (place.body(url=PROTECTED) for _ in range(VISITORS)) if AT_HAND in body), None)
    assert body is not None, "the picture is put in"
    assert b"<style" not in body
    assert b"static.texts.example.net/protected.css" in body


def test_a_returning_visitor_gets_urls_from_every_worker(place: Place) -> None:
    names = (f"somebody {number}" for number in range(VISITORS))
    name = next((name for name in names if AT_HAND in place.body(name=name)), None)
    assert name is not None, "at hand"
    for _ in range(VISITORS):
        assert AT_HAND not in place.body(name=name)
    referer = f"Referer: http://{place.page.host}/another"
    assert not any(AT_HAND in place.body("-H", referer) for _ in range(VISITORS)), "nor who says to come from there"
    assert any(AT_HAND in place.body() for _ in range(VISITORS)), "and others still get them"
