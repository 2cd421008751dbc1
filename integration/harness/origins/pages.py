"""Saved pages of the corpora as sites: every host that a page's markup loads objects from, and the kind of each object.

Only hosts in the markup exist. Scripts may request other names at run time, which do not exist, with or without a
proxy.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from harness.host.artifacts import Missing, corpora
from harness.net.topology import RESOLVER, site_addresses

from .program import Site

KINDS_OF_PLACES = {
    ("img", "src"): "", ("input", "src"): "", ("video", "poster"): "jpeg", ("body", "background"): "jpeg",
    ("table", "background"): "jpeg", ("td", "background"): "jpeg", ("script", "src"): "script",
    ("iframe", "src"): "html", ("frame", "src"): "html", ("embed", "src"): "", ("source", "src"): "",
}  # fmt: skip
"""Kind of an object by its place, if the extension of its URL does not tell. With "" the origins guess."""

RELS = {"stylesheet": "css", "icon": "icon", "apple-touch-icon": "png", "apple-touch-icon-precomposed": "png"}

EXTENSIONS = {
    "jpg": "jpeg", "jpeg": "jpeg", "webp": "jpeg", "png": "png", "gif": "gif", "svg": "svg", "ico": "icon",
    "css": "css", "js": "script",
}  # fmt: skip

CSS_URL = re.compile(r"""url\(\s*["']?([^"')]+)["']?\s*\)|@import\s+["']([^"']+)["']""", re.IGNORECASE)

BEACON = re.compile(r"pixel|beacon|blank|spacer|count|1x1|track", re.IGNORECASE)


@dataclass(frozen=True)
class PageObject:
    """One object that the markup of a page requests."""

    url: str
    kind: str


@dataclass
class Page:
    """A saved page, and the URL to serve it at."""

    path: Path
    url: str
    objects: list[PageObject] = field(default_factory=list)

    @property
    def host(self) -> str:
        """The page's own host."""
        return urlsplit(self.url).hostname or ""

    def hosts(self) -> list[str]:
        """Returns every host, beginning with the page's own."""
        others = {urlsplit(one.url).hostname or "" for one in self.objects} - {self.host}
        return [self.host, *sorted(others)]

    def add_to(self, site: Site, addresses: Iterator[str]) -> None:
        """Adds every host of the page to the site."""
        for host in self.hosts():
            if host not in site.hosts:
                site.hosts[host] = {"address": next(addresses), "generate": True, "objects": {}}
        # No charset: the saved pages have no header fields, and most name a charset in the markup.
        own = {"file": str(self.path), "header": {"Content-Type": "text/html", "Cache-Control": "no-cache"}}
        site.hosts[self.host]["objects"][_target(self.url)] = own
        for one in self.objects:
            split = urlsplit(one.url)
            if one.kind and split.hostname and _target(one.url) != _target(self.url):
                site.hosts[split.hostname]["objects"].setdefault(_target(one.url), {"kind": one.kind})


def saved_page(name: str, host: str | None = None, *, scheme: str = "http") -> Page:
    """Reads a page of the corpora, by its path below html/. `host` is for pages that do not tell theirs."""
    root = corpora() / "html"
    path = root / name
    if not path.exists():
        raise Missing(f"the saved page {name} is not in {root}")
    with (root / "page-stats.csv").open(newline="", encoding="utf-8") as rows:
        row = next((row for row in csv.DictReader(rows) if row["file"] == name), None)
    host = host or (row["page_host"] if row else "")
    assert host, f"{name} does not tell its host"
    page = Page(path, f"{scheme}://{host}/")
    page.objects = [one for one in objects_of(path.read_bytes().decode("latin-1"), page.url) if _can_serve(one.url)]
    return page


def page_site(*pages: Page, https: bool = False, ca: dict[str, str] | None = None) -> Site:
    """Makes one site of all hosts of the pages, on addresses of the topology's Internet."""
    site = Site(dns=[f"{RESOLVER}:53"], https_port=443 if ca else 0, ca=ca)
    assert ca or not https
    addresses = iter(site_addresses())
    for page in pages:
        page.add_to(site, addresses)
    return site


def objects_of(markup: str, url: str) -> list[PageObject]:
    """Returns the objects that the markup of a page requests, without repeats, in the order of the page."""
    finder = _Finder(url)
    finder.feed(markup)
    return list(dict.fromkeys(finder.found))


class _Finder(HTMLParser):
    """Collects URLs of objects. It may miss rare places; the origins respond to requests for those anyway."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.base = url
        self.found: list[PageObject] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self._in_style = tag == "style"
        if tag == "base" and values.get("href"):
            self.base = urljoin(self.base, values["href"])
        for name, value in values.items():
            if (tag, name) in KINDS_OF_PLACES and value:
                self._add(value, KINDS_OF_PLACES[tag, name])
            if name == "srcset":
                for candidate in re.split(r"\s*,\s+", value.strip()):
                    self._add(candidate.split()[0] if candidate.split() else "", "")
            if name == "style":
                self._add_css(value)
        if tag == "link":
            for rel in values.get("rel", "").lower().split():
                if rel in RELS:
                    self._add(values.get("href", ""), RELS[rel])

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self._add_css(data)

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - HTMLParser's signature
        self._in_style = False

    def _add_css(self, text: str) -> None:
        for url, imported in CSS_URL.findall(text):
            self._add(url or imported, "css" if imported else "")

    def _add(self, reference: str, kind: str) -> None:
        reference = re.sub(r"[\t\n\r]", "", reference.strip())
        try:
            url = urljoin(self.base, reference)
            split = urlsplit(url)
        except ValueError:
            return
        if split.scheme not in ("http", "https") or not split.hostname or not reference:
            return
        extension = split.path.rsplit(".", 1)[-1].lower()
        if extension in EXTENSIONS:
            kind = EXTENSIONS[extension]
        if kind == "" and not extension.isalpha():
            kind = "pixel" if BEACON.search(url) else "jpeg"
        if kind == "gif" and BEACON.search(url):
            kind = "pixel"
        self.found.append(PageObject(url.split("#")[0], kind))


NAME = re.compile(r"[a-z0-9._-]+")


def _can_serve(url: str) -> bool:
    """Returns true if the bed has that port and can give the host an address."""
    split = urlsplit(url)
    try:
        host = split.hostname or ""
        # Only names: `upstream.map` accepts no address, and a bed has no route to one.
        return split.port in (None, 80, 443) and bool(NAME.fullmatch(host)) and not _is_address(host)
    except ValueError:
        return False


def _is_address(host: str) -> bool:
    """Returns true if browsers read a host as an IPv4 address: its last label is a number (URL, "ends in a number")."""
    last = host.removesuffix(".").rpartition(".")[2]
    return re.fullmatch(r"[0-9]+|0x[0-9a-f]*", last) is not None


def _target(url: str) -> str:
    split = urlsplit(url)
    return (split.path or "/") + (f"?{split.query}" if split.query else "")
