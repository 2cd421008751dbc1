"""Objects of public pages that a browser keeps from a proxy at a private address, or asks its user about.

Chromium calls 192.168.0.0/16 and 100.64.0.0/10 local. A page at a public address that loads from there has its objects
blocked over http. Over https the user is asked, and a headless browser denies. Both leave an object without a response.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.names_beds import served
from harness.boxes.bed import Bed
from harness.boxes.pep import PROXY_NAME
from harness.browsers.chromium import Browser, browser, requests_of
from harness.clients.moved import true_url
from harness.host.waiting import wait_for
from harness.lab.boxes import pair_of_boxes
from harness.lab.contenders.pair import NOBODY
from harness.net.authority import Authority
from harness.net.namespaces import Namespace
from harness.net.topology import PRIVATE_ADDRESS, PROXY_RANGE, RESOLVER, leads_to_proxy
from harness.origins.program import Site
from harness.results.figures import at_most, table

TARGETS = [at_most("moved_blocked", 0)]
PRIVATE, CARRIER = "192.168.77.1", "100.64.77.1"
"""Addresses of proxies: in a private network, and behind a carrier's NAT."""
PAGE, OTHER, LOCAL = "www.page.example.org", "img.page.example.net", "printer.example.com"
"""The host of the page and some objects, that of others, and one at a private address."""
ADDRESSES = {PAGE: "203.0.113.61", OTHER: "203.0.113.62", LOCAL: PRIVATE_ADDRESS}
OBJECTS = {
    "image.jpg": '<img src="{}" alt="">',
    "style.css": '<link rel="stylesheet" href="{}">',
    "script.js": '<script src="{}"></script>',
    "font.ttf": "<style>@font-face {{ font-family: f{number}; src: url({}) }} .f{number} {{ font-family: f{number} }}"
    '</style><p class="f{number}">text</p>',
    "fetched.json": "<script>fetch('{}').catch(() => 0)</script>",
    "requested.json": "<script>{{ const x = new XMLHttpRequest(); x.open('GET', '{}'); x.send() }}</script>",
    "frame.html": '<iframe src="{}"></iframe>',
    "film.mp4": '<video src="{}" preload="auto"></video>',
}
"""Each kind of object, and its place in the page."""
LISTS = {"all listed": [PAGE, OTHER], "page listed": [PAGE], "objects listed": [OTHER], "nothing listed": [NOBODY]}
FORMS = ((False, "http"), (True, "auto"), (False, "auto"))
"""Of edges: is there a range of addresses, and the target of moved URLs."""
SCHEMES = ("http", "https")
LINK = "rural-lte"
LIMIT_S = 20
SETTLE_S = 0.5


@dataclass(frozen=True)
class Loaded:
    """One load of the page."""

    way: str
    scheme: str
    blocked: list[str]
    """Objects without a response."""
    moved: int
    """Requests that went to a name or an address of the proxy."""


@dataclass(frozen=True)
class Variant:
    """The address of an edge, and the target of moved URLs."""

    address: str
    has_range: bool
    target: str

    @property
    def name(self) -> str:
        """Returns the words of a table."""
        return f"{self.address}{' and a range' if self.has_range else ''}, target {self.target}"


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Loads the page by every way. Returns the objects that only a box lost."""
    check_instrument(folder)
    variants = list(itertools.product([PRIVATE] if quick else [PRIVATE, CARRIER], FORMS[: 2 if quick else None]))
    edges = [Variant(address, has_range, target) for address, (has_range, target) in variants]
    addresses = dict.fromkeys(one.address for one in edges)
    found = [one for edge_at in edges for one in by_edges(folder, edge_at)]
    found += [one for address in addresses for one in (*opened(folder, address), *by_pairs(folder, address))]
    print(rows(found), flush=True)
    if not any(one.moved for one in found):
        raise RuntimeError("no box moved anything, so nothing could be blocked")
    return {"moved_blocked": sum(len(one.blocked) for one in found)}, [asdict(one) for one in found]


def check_instrument(folder: Path) -> None:
    """Raises unless all objects load directly, and the browser blocks those at a private address."""
    plain = Variant(PRIVATE, has_range=False, target="http")
    with edge(home(folder), plain, LISTS["all listed"]) as bed, bed.without_longhaul():
        whole = list(loads(bed.topology.clients, bed.authority, bed.folder, "direct"))
        local = list(loads(bed.topology.clients, bed.authority, bed.folder, "direct", other=LOCAL))
    if any(one.blocked for one in whole) or not all(len(one.blocked) == len(OBJECTS) for one in local):
        raise RuntimeError(f"the browser blocks other objects than those at private addresses: {whole}, {local}")


def by_edges(folder: Path, variant: Variant) -> Iterator[Loaded]:
    """Loads the page by edges at an address, each with a list of its own."""
    for words, listed in LISTS.items():
        with edge(home(folder), variant, listed) as bed:
            way = f"edge at {variant.name}, {words}"
            yield from loads(bed.topology.clients, bed.authority, bed.folder, way)
            for known, addresses in known_addresses(variant.address).items() if words == "all listed" else ():
                rules = ",".join(f"MAP {name} {address}" for name, address in addresses.items())
                flags = (f"--host-resolver-rules={rules}",)
                yield from loads(bed.topology.clients, bed.authority, bed.folder, f"{way}, {known}", flags=flags)


def known_addresses(proxy: str) -> dict[str, dict[str, str]]:
    """Returns addresses that a browser knows without the box. A page at the address of the proxy may have objects
    there, which are moved."""
    return {
        "true addresses known": {name: ADDRESSES[name] for name in (PAGE, OTHER)},
        "the page at the proxy": {PAGE: proxy},
    }


def opened(folder: Path, address: str) -> Iterator[Loaded]:
    """Loads the page by an edge that holds the keys of its site."""
    with edge(home(folder), Variant(address, has_range=False, target="auto"), [NOBODY], has_keys=True) as bed:
        yield from loads(bed.topology.clients, bed.authority, bed.folder, f"edge at {address} with the site's keys")


def by_pairs(folder: Path, address: str) -> Iterator[Loaded]:
    """Loads the page by pairs whose remote has an address, each with a list of its own."""
    for words, listed in LISTS.items():
        own = home(folder)
        with (
            pair_of_boxes(own, ADDRESSES, listed, profile=LINK, front=address) as boxes,
            served(boxes, own, site_of(own)),
        ):
            yield from loads(boxes.clients, boxes.authority, own, f"pair at {address}, {words}")


@contextmanager
def edge(folder: Path, variant: Variant, listed: Sequence[str], *, has_keys: bool = False) -> Iterator[Bed]:
    """An edge that intercepts its clients. It may have the keys of the page's site."""
    authority = Authority(folder)
    site = site_of(folder)
    site.dns, site.ca = [f"{RESOLVER}:53"], authority.files.as_dict()
    site.records[PROXY_NAME] = [variant.address]
    changes: dict[str, Any] = {
        "proxy": {
            "addresses": [variant.address, *([PROXY_RANGE] if variant.has_range else [])],
            "secure_names": [PROXY_NAME],
        },
        "rewrite": {"level": "safe", "target": variant.target},
    }
    if has_keys:
        keys = ([PROXY_NAME], [PAGE, OTHER])
        changes["tls"] = {"terminate": [{"names": names, **authority.issue(*names).as_dict()} for names in keys]}
    bed = Bed(folder, site, listed, authority, **changes)
    with bed:
        bed.topology.gateway.ip("address", "add", f"{variant.address}/32", "dev", "lo")
        if variant.has_range and NOBODY not in listed:
            wait_for("steered names", lambda: leads_to_proxy(bed.dig(listed[0], "A").addresses()[0]))
        yield bed


def home(folder: Path) -> Path:
    """Makes a folder for a bed. Names of sockets leave no room for a long one."""
    (made := folder / str(sum(1 for _ in folder.iterdir()))).mkdir()
    return made


def site_of(folder: Path) -> Site:
    """Returns the servers of the page, whose objects are on its own host and on another one, and of a local host."""
    site = Site(https_port=443)
    for name, address in ADDRESSES.items():
        # Scripts read responses of other hosts, and fonts need the field anyway.
        header = {"Access-Control-Allow-Origin": "*"}
        site.hosts[name] = {"address": address, "generate": True, "header": header, "objects": {}}
    for scheme, other in itertools.product(SCHEMES, (OTHER, LOCAL)):
        path = folder / f"{scheme}-{other}.html"
        path.write_text(markup(scheme, other))
        site.hosts[PAGE]["objects"][f"/{path.name}"] = {"file": str(path)}
    return site


def markup(scheme: str, other: str) -> str:
    """Returns the page. Objects have absolute URLs, which a box may move."""
    places = [
        place.format(url, number=number)
        for number, (url, place) in enumerate(zip(objects(scheme, other), OBJECTS.values(), strict=True))
    ]
    own = [place.format(f"/{name}", number=len(places)) for name, place in OBJECTS.items()]
    return "\n".join(['<!doctype html><title>page</title><link rel="icon" href="data:,">', *places, *own])


def objects(scheme: str, host: str) -> list[str]:
    """Returns the URLs of the objects on a host."""
    return [f"{scheme}://{host}/{name}" for name in OBJECTS]


def loads(
    clients: Namespace, authority: Authority, folder: Path, way: str, *, other: str = OTHER, flags: tuple[str, ...] = ()
) -> Iterator[Loaded]:
    """Loads the page over both schemes, in a new browser."""
    with browser(folder, clients, authority, flags=flags) as chromium:
        for scheme in SCHEMES:
            yield load(chromium, way, scheme, other)


def load(chromium: Browser, way: str, scheme: str, other: str) -> Loaded:
    """Loads the page in a tab that shares nothing with other tabs."""
    with chromium.tab(isolated=True) as tab:
        tab.navigate(f"{scheme}://{PAGE}/{scheme}-{other}.html", timeout_s=LIMIT_S, settle_s=SETTLE_S)
        requests = list(requests_of(tab.events()))
    proxies = {PRIVATE, CARRIER, PROXY_NAME}
    arrived = {true_url(one.url, proxies).split("://")[1] for one in requests if one.status}
    wanted = [url.split("://")[1] for host in (PAGE, other) for url in objects(scheme, host)]
    moved = sum(one.url.split("/")[2] in proxies for one in requests)
    return Loaded(way, scheme, [url for url in wanted if url not in arrived], moved)


def rows(found: Sequence[Loaded]) -> str:
    """Returns the table of objects without a response."""
    lines = [["objects of a public page", "scheme", "moved", "blocked"]]
    lines += [[one.way, one.scheme, str(one.moved), str(len(one.blocked))] for one in found]
    return table(lines)
