"""Reads the page tables: page_tables/*.toml say what a page is made of and where each number comes from.

A file holds one page, or a family of pages that share a structure and differ in a few numbers (`[[page]]`), or saved
pages of the corpora (`[[saved]]`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("page_tables")

USUAL_BYTES = 12_000
"""Of a saved page's object, for estimates of time."""


@dataclass(frozen=True)
class Batch:
    """Objects of one kind, and what they weigh together."""

    kind: str
    count: int
    total_bytes: int


@dataclass(frozen=True)
class PageTable:
    """A page as published: numbers only. `pages.py` makes a page of it."""

    name: str
    title: str
    source: str
    host: str
    hosts: int
    html_bytes: int
    compressed: bool
    """Sizes are those after compression, and the servers compress; otherwise they never do."""
    batches: tuple[Batch, ...]
    saved: str = ""
    """A saved page, by its path in the corpora; empty for one that is made."""

    @property
    def total_bytes(self) -> int:
        """The page and its objects, as its servers send them."""
        return self.html_bytes + sum(batch.total_bytes for batch in self.batches)


@cache
def page_tables() -> dict[str, PageTable]:
    """Every page, by name."""
    found = [table for path in sorted(FOLDER.glob("*.toml")) for table in _read(path)]
    return {table.name: table for table in found}


def page_table(name: str) -> PageTable:
    """One page; KeyError names those there are."""
    tables = page_tables()
    if name not in tables:
        raise KeyError(f"no page is called {name}; there are {', '.join(sorted(tables))}")
    return tables[name]


def _read(path: Path) -> Iterator[PageTable]:
    text = tomllib.loads(path.read_text())
    if "generated" in text:
        yield from _generated(path.stem, text)
        return
    if "saved" in text:
        yield from (_saved(one, text) for one in text["saved"])
        return
    if "page" not in text:
        yield _page(path.stem, text, text["html_bytes"], tuple(_batch(one) for one in text["objects"]))
        return
    for member in text["page"]:
        if "image" in text:
            count = member["images"]
            image = Batch(text["image"]["kind"], count, count * text["image"]["bytes"])
            yield _page(member["name"], text, text["html_bytes"], (image,))
        else:
            yield _shared_out(member, text)


def _generated(stem: str, text: dict[str, Any]) -> Iterator[PageTable]:
    """Pages in every mixture of numbers of hosts and images."""
    hosts, images = text["generated"]["hosts"], text["generated"]["images"]
    for number in range(text["generated"]["count"]):
        count = images[number // len(hosts) % len(images)]
        own = {**text, "hosts": hosts[number % len(hosts)]}
        image = Batch(text["image"]["kind"], count, count * text["image"]["bytes"])
        yield _page(f"{stem}-{number:02d}", own, text["html_bytes"], (image,))


def _page(name: str, text: dict[str, Any], html_bytes: int, batches: tuple[Batch, ...]) -> PageTable:
    return PageTable(
        name=name,
        title=text["title"],
        source=" ".join(text["source"].split()),
        host=text.get("host", f"www.{name}.test"),
        hosts=text["hosts"],
        html_bytes=html_bytes,
        compressed={"plain": False, "compressed": True}[text["text"]],
        batches=batches,
    )


def _saved(one: dict[str, Any], text: dict[str, Any]) -> PageTable:
    objects = (Batch("jpeg", one["objects"], one["objects"] * USUAL_BYTES),)
    own = {**text, "host": one["host"], "hosts": one["hosts"]}
    return replace(_page(one["name"], own, one["html_bytes"], objects), saved=one["file"])


def _batch(one: dict[str, Any]) -> Batch:
    return Batch(one["kind"], one["count"], one["bytes"])


def _shared_out(member: dict[str, Any], text: dict[str, Any]) -> PageTable:
    """A page of known size and number of requests, in the family's shares; the last kind takes what is left."""
    total_bytes, count = round(member["kilobytes"] * 1000), member["requests"] - 1
    html_bytes = round(total_bytes * text["html"]["bytes"])
    *others, last = text["objects"]
    batches = [
        Batch(one["kind"], max(1, round(count * one["count"])), round(total_bytes * one["bytes"])) for one in others
    ]
    left_count = count - sum(batch.count for batch in batches)
    left_bytes = total_bytes - html_bytes - sum(batch.total_bytes for batch in batches)
    return _page(member["name"], text, html_bytes, (*batches, Batch(last["kind"], left_count, left_bytes)))
