"""A real browser that reaches the proxy only by DNS. No rule on the path redirects a connection.

The clients' resolver is the gateway, and the rules that redirect traffic are not loaded. So the DNS response alone
determines the destination of a connection. The origins log the source address of each request. It tells the proxy's
requests from the clients' own.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from e2e.bed import DEMO_HOSTS, UNLISTED
from harness.boxes.bed import OWN, Bed
from harness.browsers.chromium import Load, browser
from harness.clients.commands import dig
from harness.clients.moved import is_moved, true_url
from harness.host.artifacts import need_commands
from harness.net.namespaces import Namespace
from harness.net.topology import CLIENT, GATEWAY, PROXY_RANGE, leads_to_proxy

LISTED_PAGE = "http://www.demo.test/"
UNLISTED_PAGE = f"http://{UNLISTED}/page.html"
PAGE_OBJECTS = 15
"""The demo page has more. A page without its style sheet would have fewer."""


@dataclass
class Visit:
    """A page as the browser loaded it, and the source addresses that the origins logged."""

    load: Load
    sources: dict[str, set[str]]
    """The source addresses of the requests for each host."""

    def remotes(self) -> dict[str, set[str]]:
        """Returns the remote addresses of the browser's connections, by host."""
        found: dict[str, set[str]] = {}
        for one in self.load.loaded():
            found.setdefault(urlsplit(one.url).hostname or "", set()).add(one.remote)
        return found


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the test with a short name, because a browser keeps a socket in it."""
    return tmp_path_factory.mktemp("steering")


@pytest.fixture
def clients(bed: Bed, folder: Path) -> Iterator[Namespace]:
    """Clients whose resolver is the gateway, and whose traffic no rule redirects."""
    need_commands("chromium", "certutil")
    asking_the_gateway = copy.copy(bed.topology.clients)
    asking_the_gateway.resolv_conf = folder / "resolv.conf"
    asking_the_gateway.resolv_conf.write_text(f"nameserver {GATEWAY}\n")
    with bed.without_longhaul():
        yield asking_the_gateway


def visit(bed: Bed, folder: Path, clients: Namespace, url: str) -> Visit:
    bed.origins.forget()
    with browser(folder, clients, bed.authority) as fresh:
        load = fresh.load(url)
    sources: dict[str, set[str]] = {}
    for request in bed.origins.requests():
        sources.setdefault(request["host"], set()).add(request["remote"].rsplit(":", 1)[0])
    return Visit(load, sources)


@contextmanager
def proxy_out_of_reach(clients: Namespace, how: str) -> Iterator[None]:
    """Cuts the client off from the proxy's addresses. DNS and the origins stay reachable."""
    if how == "no route":
        clients.ip("route", "add", "unreachable", PROXY_RANGE)
        undo = ("ip", "route", "del", "unreachable", PROXY_RANGE)
    else:
        clients.run("nft", "add table ip roamed { chain out { type filter hook output priority 0; }; }")
        clients.run("nft", f"add rule ip roamed out ip daddr {PROXY_RANGE} drop")
        undo = ("nft", "delete table ip roamed")
    try:
        yield
    finally:
        clients.run(*undo)


def origin_of(bed: Bed, host: str) -> str:
    return f"{bed.site.hosts[host]['address']}:80"


def test_a_listed_name_is_reached_at_the_proxy_and_another_at_its_origin(
    bed: Bed, folder: Path, clients: Namespace
) -> None:
    listed = visit(bed, folder, clients, LISTED_PAGE)
    assert len(listed.load.loaded()) >= PAGE_OBJECTS
    assert listed.load.failed() == []
    assert all(leads_to_proxy(remote.rsplit(":", 1)[0]) for remotes in listed.remotes().values() for remote in remotes)
    assert any(is_moved(one.url, OWN) for one in listed.load.loaded())
    assert all(CLIENT not in sources for sources in listed.sources.values())

    unlisted = visit(bed, folder, clients, UNLISTED_PAGE)
    assert [one.url for one in unlisted.load.loaded()][:1] == [UNLISTED_PAGE]
    assert unlisted.remotes() == {UNLISTED: {origin_of(bed, UNLISTED)}}
    assert unlisted.sources == {UNLISTED: {CLIENT}}


@pytest.mark.parametrize("how", ["no route", "silence"])
def test_out_of_the_proxy_s_reach_the_page_loads_from_the_origin_behind_it(
    bed: Bed, folder: Path, clients: Namespace, how: str
) -> None:
    within = visit(bed, folder, clients, LISTED_PAGE)
    with proxy_out_of_reach(clients, how):
        # The DNS response is the same. Only the route to its first address is gone.
        assert leads_to_proxy(dig("www.demo.test", "A", GATEWAY, namespace=clients).addresses()[0])
        away = visit(bed, folder, clients, LISTED_PAGE)
    assert away.load.failed() == []
    assert {one.url for one in away.load.loaded()} == {true_url(one.url, OWN) for one in within.load.loaded()}
    assert away.remotes() == {host: {origin_of(bed, host)} for host in DEMO_HOSTS}
    assert all(sources == {CLIENT} for sources in away.sources.values())
