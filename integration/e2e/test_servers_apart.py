"""Names of several servers that one certificate covers, steered by DNS alone, in Chromium.

Browsers send the requests for two names over one connection if both have one address. The server behind it would have
one of the names only.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness.boxes.bed import Bed
from harness.boxes.pep import PROXY_NAME, gateway_config
from harness.browsers.chromium import browser, requests_of
from harness.clients.commands import dig
from harness.host.artifacts import built, need_commands
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.net.topology import GATEWAY, PROXY, PROXY_RANGE, RESOLVER, leads_to_proxy
from harness.origins.program import Site
from harness.origins.shared_certificates import KINDS, SharedPage, shared_pages

PAGES = [page for page in shared_pages(2 * len(KINDS)) if page.kind.name in "aef"]
"""A certificate of two servers, one server, and two servers with certificates of their own: both orders of each."""


@pytest.fixture(params=[False, True], ids=["one address", "a range"])
def has_range(request: pytest.FixtureRequest) -> bool:
    """True if the edge has a range of addresses."""
    return request.param


@pytest.fixture
def servers(*, has_range: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """An edge that steers the names of all pages, and to which nothing but its DNS leads."""
    need_commands("chromium", "certutil")
    folder = tmp_path_factory.mktemp("apart")
    authority = Authority(folder)
    site = Site(https_port=443, dns=[f"{RESOLVER}:53"], ca=authority.files.as_dict())
    for page in PAGES:
        page.add_to(site, folder)
    listen = gateway_config(folder, None)["listen"] | {"intercept": "none"}
    proxy = {"addresses": [PROXY, PROXY_RANGE] if has_range else [PROXY], "secure_names": [PROXY_NAME]}
    bed = Bed(folder, site, sorted(site.hosts), authority, listen=listen, proxy=proxy)
    with bed, bed.without_longhaul():
        yield bed


def explained(servers: Bed, name: str) -> dict[str, Any]:
    """Returns what the box says of a name."""
    words = [built("longhaul"), "explain", servers.config, "--name", name, "--json"]
    return json.loads(servers.topology.gateway.run(*words).stdout)


def test_no_browser_sends_a_request_to_another_server(servers: Bed, *, has_range: bool) -> None:
    clients = copy.copy(servers.topology.clients)
    clients.resolv_conf = servers.folder / "steered-resolv.conf"
    clients.resolv_conf.write_text(f"nameserver {GATEWAY}\n")

    def address(name: str) -> str:
        return dig(name, "A", GATEWAY, namespace=clients).addresses()[0]

    def steered(page: SharedPage) -> list[bool]:
        return [leads_to_proxy(address(name)) for name in page.hosts]

    with browser(servers.folder, clients, servers.authority) as chromium:

        def problems(page: SharedPage) -> list[str]:
            with chromium.tab(isolated=True) as tab:
                tab.navigate(page.urls[0], timeout_s=20, settle_s=0.1)
                return list(page.problems(requests_of(tab.events())))

        assert {page: found for page in PAGES if (found := problems(page))} == {}
        for page in PAGES:
            if page.kind.name == "a" and not has_range:
                # The certificate tells that one of the two would get requests of the other.
                assert sorted(steered(page)) == [False, True], page
            else:
                wait_for("the certificates", lambda page=page: all(steered(page)), timeout_s=30)
            one_address = len(set(map(address, page.hosts))) == 1
            assert one_address == (page.kind.name == "e" or (page.kind.name == "f" and not has_range)), page
            for name in page.hosts:
                expected = "steered" if leads_to_proxy(address(name)) else "certificate_shared"
                assert explained(servers, name)["outcome"] == expected, name
        # Now with what the box has learned.
        assert {page: found for page in PAGES if (found := problems(page))} == {}
