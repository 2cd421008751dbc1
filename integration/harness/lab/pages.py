"""Makes the pages of the page tables: markup, objects of drawn sizes, and hosts. They are the same in every run.

A page is served over http and over https, by the same hosts, under a path for each scheme.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.origins.program import Site

from .tables import Batch, PageTable

EXTENSIONS = {"css": "css", "script": "js", "jpeg": "jpg", "gif": "gif", "png": "png", "svg": "svg", "font": "ttf"}

WORDS = (
    "anchor", "ballast", "beacon", "cabin", "compass", "current", "dock", "ferry", "fog", "harbour", "island", "keel",
    "lantern", "ledger", "mooring", "morning", "north", "packet", "pilot", "quay", "radio", "rain", "reef", "relay",
    "sail", "salt", "season", "signal", "storm", "tide", "village", "voyage", "watch", "water", "weather", "wind",
)  # fmt: skip

SPREAD = 4.0
"""The ratio of the largest object of a batch to the smallest. Sizes are even on a logarithmic scale."""

SHARED_IMAGES, SHARED_TEXT = 0.68, 0.66
"""The share of a second page's images, and of its markup, that the first page of the site had. Its style sheets and
scripts are the same. Medians over the 39 sites of the newspaper corpus that have two pages."""

SMALLEST_BYTES = 60
"""A GIF cannot be much smaller, and a shorter script or style sheet has no content."""


@dataclass(frozen=True)
class PageObject:
    """One object of a page."""

    host: str
    path: str
    kind: str
    size_bytes: int


@dataclass(frozen=True)
class Page:
    """A page that can be served."""

    table: PageTable
    objects: tuple[PageObject, ...]
    is_second: bool = False
    """It is a second page of the site of its table."""

    @property
    def name(self) -> str:
        """The name of its table, and for a second page that it is one."""
        return f"{self.table.name}-second" if self.is_second else self.table.name

    def url(self, scheme: str) -> str:
        """The URL of the page, for one scheme."""
        return f"{scheme}://{self.table.host}{self._path(scheme)}"

    def _path(self, scheme: str) -> str:
        return f"/{scheme}{'-second' if self.is_second else ''}.html"

    @property
    def hosts(self) -> list[str]:
        """Its hosts, its own first."""
        return host_names(self.table)

    def urls(self, scheme: str) -> list[str]:
        """The page and all its objects."""
        return [self.url(scheme), *(f"{scheme}://{one.host}{one.path}" for one in self.objects)]

    def markup(self, scheme: str) -> bytes:
        """Its markup: style sheets and a third of the scripts in the head, images among text, other scripts last."""
        return _sized(self, scheme)

    def add_to(self, site: Site, folder: Path, addresses: Iterator[str]) -> None:
        """Gives its hosts a place in the site, and writes its markup below `folder`. A second page uses the places of
        the first one."""
        for host in self.hosts:
            if self.is_second and host in site.hosts:
                continue
            # Fonts of other sites need the first field, and content networks commonly send it.
            header = {"Access-Control-Allow-Origin": "*", "Server": "origin"}
            site.hosts[host] = {"address": next(addresses), "header": header, "objects": {}}
        compressed = self.table.compressed
        for scheme in ("http", "https"):
            path = folder / f"{self.name}-{scheme}.html"
            path.write_bytes(self.markup(scheme))
            site.hosts[self.table.host]["objects"][self._path(scheme)] = {
                "file": str(path), "plain": not compressed, "header": {"Content-Type": "text/html; charset=utf-8"},
            }  # fmt: skip
        for one in self.objects:
            size: dict[str, Any] = (
                {"transfer_bytes": one.size_bytes} if compressed else {"bytes": one.size_bytes, "plain": True}
            )
            site.hosts[one.host]["objects"][one.path] = {"kind": one.kind, **size}


def host_names(table: PageTable) -> list[str]:
    """The names of a page's hosts."""
    domain = table.host.split(".", 1)[1]
    return [table.host, *(f"s{number}.{domain}" for number in range(1, table.hosts))]


def make_page(table: PageTable) -> Page:
    """Draws sizes and hosts, from the page's name alone."""
    draw = random.Random(f"page {table.name}")
    hosts = host_names(table)
    sizes = [(batch, size) for batch in table.batches for size in _sizes(batch, draw)]
    places = _places(len(sizes), hosts, draw)
    objects = tuple(
        PageObject(host, f"/{batch.kind}/{number}.{EXTENSIONS[batch.kind]}", batch.kind, size)
        for number, ((batch, size), host) in enumerate(zip(sizes, places, strict=True))
    )
    return Page(table, objects)


def second_page(first: Page) -> Page:
    """Returns another page of the same site. It has as many objects and bytes as the first one, and shares with it what
    pages of one site share."""
    differ: set[str] = set()
    for kind in {one.kind for one in first.objects} - {"css", "script", "font"}:
        images = [one.path for one in first.objects if one.kind == kind]
        differ.update(images[round(SHARED_IMAGES * len(images)) :])
    objects = tuple(
        replace(one, path=one.path.replace(f"/{one.kind}/", f"/{one.kind}/second-")) if one.path in differ else one
        for one in first.objects
    )
    return Page(first.table, objects, is_second=True)


def _sizes(batch: Batch, draw: random.Random) -> list[int]:
    """Sizes whose sum is the batch's."""
    shares = [SPREAD ** draw.random() for _ in range(batch.count)]
    room = max(0, batch.total_bytes - SMALLEST_BYTES * batch.count)
    sizes = [SMALLEST_BYTES + int(room * share / sum(shares)) for share in shares]
    sizes[-1] += max(0, batch.total_bytes - sum(sizes))
    return sizes


def _places(count: int, hosts: list[str], draw: random.Random) -> list[str]:
    """A host for each object: every host has one, and host k further ones with a chance of 1/k."""
    weights = [1 / rank for rank in range(1, len(hosts) + 1)]
    places = hosts[:count] + draw.choices(hosts, weights, k=max(0, count - len(hosts)))
    draw.shuffle(places)
    return places


def _sized(page: Page, scheme: str) -> bytes:
    """The markup with as much text as gives it its published size, within 1 %."""
    wanted = page.table.html_bytes
    paragraphs, step = 1, 256
    best = _markup(page, scheme, paragraphs)
    while step:
        longer = _markup(page, scheme, paragraphs + step)
        if _weight(longer, page.table.compressed) <= wanted:
            paragraphs, best = paragraphs + step, longer
        else:
            step //= 2
    if not page.table.compressed:
        best += b" " * max(0, wanted - len(best))
    return best


def _weight(markup: bytes, compressed: bool) -> int:
    return len(zlib.compress(markup, 6)) if compressed else len(markup)


def _markup(page: Page, scheme: str, paragraphs: int) -> bytes:
    draw, other = (random.Random(f"text {name}") for name in (page.table.name, page.name))
    by_kind: dict[str, list[str]] = {}
    for one in page.objects:
        by_kind.setdefault(one.kind, []).append(f"{scheme}://{one.host}{one.path}")
    scripts = by_kind.pop("script", [])
    sheets = by_kind.pop("css", [])
    fonts = by_kind.pop("font", [])
    pictures = [url for urls in by_kind.values() for url in urls]
    first = len(scripts) // 3
    head = [
        "<!doctype html>", '<html lang="en"><head><meta charset="utf-8">', f"<title>{page.name}</title>",
        '<link rel="icon" href="data:,">',  # or the browser asks for one that no table counts
        *(f'<link rel="stylesheet" href="{url}">' for url in sheets),
        *(f"<style>@font-face {{ font-family: own{n}; src: url({url}) }} body {{ font-family: own{n} }}</style>"
          for n, url in enumerate(fonts)),
        *(f'<script src="{url}"></script>' for url in scripts[:first]),
        "</head><body>", f"<h1>{page.name}</h1>",
    ]  # fmt: skip
    body: list[str] = []
    for number in range(max(paragraphs, len(pictures))):
        if number < len(pictures):
            body.append(f'<img src="{pictures[number]}" width="120" height="90" alt="">')
        if number < paragraphs:
            words, own = draw.choices(WORDS, k=12), other.choices(WORDS, k=12)
            # The pages of a site share what stands around the text in the middle.
            differs = page.is_second and SHARED_TEXT / 2 <= number / paragraphs < 1 - SHARED_TEXT / 2
            body.append(f"<p>{' '.join(own if differs else words)}</p>")
    tail = [*(f'<script src="{url}" async></script>' for url in scripts[first:]), "</body></html>", ""]
    return "\n".join([*head, *body, *tail]).encode()
