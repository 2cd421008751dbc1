"""The sites behind the gateway that the end-to-end tests share."""

from __future__ import annotations

import itertools
from pathlib import Path
from urllib.parse import quote

from harness.boxes.bed import Bed
from harness.host.artifacts import REPOSITORY, Missing
from harness.net.authority import Authority
from harness.net.topology import FORBIDDEN, INTERNET, LINK_LOCAL_ADDRESS, PRIVATE_ADDRESS, RESOLVER, SITES
from harness.origins.pages import Page, page_site, saved_page
from harness.origins.program import Site

SAVED_PAGE = ("goose3/tests/data/content/test_elmondo1.html", "www.elmundo.es")
"""A real page of 34 objects on 15 hosts, all http, in ISO-8859-15."""

DEMO_HOSTS = ("www.demo.test", "img.demo.test", "cdn.demo.test", "ads.demo.test", "static.demo.test")
LAB = "lab.example.org"
"""Its responses are made to order (origins: special.go)."""
OBJECTS = "objects.example.org"
"""Any object."""
TODAY = "today.example.org"
"""A site with AAAA and HTTPS records, which lead clients past a proxy that steers by A records only."""
UNLISTED = "unlisted.example.net"
"""A site whose name is not steered."""
MIXED = "mixed.example.org"
"""A name whose first address is public and refuses connections, with a forbidden one behind it."""


class TestBed(Bed):
    """One gateway and all the sites."""

    __test__ = False

    def __init__(self, folder: Path) -> None:
        authority = Authority(folder)
        self.saved_page = _saved_page()
        pages = [self.saved_page] if self.saved_page else []
        steered = ["demo.test", "example.org", *itertools.chain.from_iterable(page.hosts() for page in pages)]
        super().__init__(folder, _site(authority, pages), steered, authority)


def _site(authority: Authority, pages: list[Page]) -> Site:
    site = page_site(*pages, ca=authority.files.as_dict())
    taken = {host["address"] for host in site.hosts.values()} | {RESOLVER}
    addresses = (str(one) for one in SITES.hosts() if str(one) not in taken)
    for name in DEMO_HOSTS:
        root = REPOSITORY / "integration" / "site" / name
        header = {"Access-Control-Allow-Origin": "*"}
        site.hosts[name] = {"address": next(addresses), "root": str(root), "header": header}
    site.hosts[TODAY] = {"address": next(addresses), "generate": True, "aaaa": "2001:db8::5", "https_record": True}
    site.hosts[LAB] = {"address": next(addresses), "special": True, "generate": True}
    site.hosts[OBJECTS] = {"address": next(addresses), "generate": True, "special": True}
    site.hosts[UNLISTED] = {"address": next(addresses), "generate": True, "special": True, "aaaa": "2001:db8::6"}
    site.records = {name: [address] for name, address in FORBIDDEN.items()}
    site.records[MIXED] = [INTERNET, PRIVATE_ADDRESS]
    # Nobody may reach these addresses. A listener on each of them would see a connection.
    site.hosts["canary-private.example.org"] = {"address": PRIVATE_ADDRESS, "generate": True}
    site.hosts["canary-metadata.example.org"] = {"address": LINK_LOCAL_ADDRESS, "generate": True}
    return site


def made_to_order(at: str = LAB, /, **order: str | int | list[str]) -> str:
    """Returns the URL on host `at` of a response made to order. The keys are those of origins/special.go:
    `declare="gzip"`."""
    pairs = [(key, one) for key, value in order.items() for one in (value if isinstance(value, list) else [value])]
    return f"http://{at}/_/answer?" + "&".join(f"{key}={quote(str(value), safe='')}" for key, value in pairs)


_fresh = itertools.count(1)


def fresh() -> str:
    """Returns a path that was never requested, so no cache has its response."""
    return f"fresh-{next(_fresh)}"


def _saved_page() -> Page | None:
    try:
        return saved_page(*SAVED_PAGE)
    except Missing:
        return None
