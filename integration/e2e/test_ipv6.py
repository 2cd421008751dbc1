"""Clients that connect over IPv6: intercepted by the rules of `longhaul host`, rewritten, steered and guarded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.boxes.bed import Bed
from harness.boxes.pep import PROXY_NAME
from harness.clients.commands import dig
from harness.host.artifacts import REPOSITORY, built
from harness.net.authority import Authority
from harness.net.topology import CLIENT_DEVICE, FORBIDDEN, PROXY, PROXY_IPV6
from harness.origins.pages import page_site
from harness.origins.program import Site

PAGE = "www.demo.test"
PAGE_IPV6 = "2001:db8:3::5"
ONLY_IPV6 = "six.example.org"
ONLY_IPV6_ADDRESS = "2001:db8:3::6"
RESOLVER_IPV6 = "2001:db8:3::53"


class Ipv6Bed(Bed):
    """A gateway for both families, with the rules of `longhaul host`."""

    def __init__(self, folder: Path, intercept: str) -> None:
        authority = Authority(folder)
        sockets = {key: [f"0.0.0.0:{port}", f"[::]:{port}"] for key, port in (("http", 80), ("tls", 443), ("dns", 53))}
        super().__init__(
            folder, _site(authority), ["demo.test", "example.org"], authority, ipv6=True,
            proxy={"addresses": [PROXY, PROXY_IPV6], "secure_names": [PROXY_NAME]},
            listen={**sockets, "intercept": intercept},
        )  # fmt: skip

    def _load(self) -> None:
        self._host(self.config, "--clients", CLIENT_DEVICE, "--apply")

    def _unload(self) -> None:
        self._host("--undo")

    def _host(self, *arguments: str | Path) -> None:
        record = ("--record", self.folder / "host.json")
        self.topology.gateway.run(built("longhaul"), "host", *arguments, *record)


def _site(authority: Authority) -> Site:
    site = page_site(ca=authority.files.as_dict())
    root = REPOSITORY / "integration" / "site" / PAGE
    site.hosts[PAGE] = {"address": "203.0.113.5", "root": str(root), "aaaa": PAGE_IPV6}
    site.hosts[ONLY_IPV6] = {"address": ONLY_IPV6_ADDRESS, "generate": True}
    site.records = {name: [address] for name, address in FORBIDDEN.items()}
    site.records["ula.example.org"] = ["fd00::1"]
    site.records["self-ipv6.example.org"] = [PROXY_IPV6]
    return site


@pytest.fixture(scope="module", params=["redirect", "tproxy"])
def ipv6_bed(
    root_bed: None,  # noqa: ARG001 - order of set-up
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Ipv6Bed]:
    with Ipv6Bed(tmp_path_factory.mktemp("ipv6"), request.param) as running:
        yield running


def at(host: str, address: str, port: int = 80) -> tuple[str, str]:
    """Returns the options of a client that resolved the name itself."""
    return "--resolve", f"{host}:{port}:[{address}]"


def test_an_intercepted_page_is_rewritten_for_a_client_on_ipv6(ipv6_bed: Ipv6Bed) -> None:
    answer = ipv6_bed.curl.get(f"http://{PAGE}/", *at(PAGE, PAGE_IPV6))
    assert (answer.status, answer.problem) == (200, "")
    assert answer.remote.startswith(PAGE_IPV6)
    assert f"https://{PROXY_NAME}/".encode() in answer.body
    assert ipv6_bed.origins.requests(host=PAGE)[-1]["header"]["Cdn-Loop"]


def test_an_origin_with_ipv6_alone_is_reached(ipv6_bed: Ipv6Bed) -> None:
    answer = ipv6_bed.curl.get(f"http://{ONLY_IPV6}/a.txt", *at(ONLY_IPV6, ONLY_IPV6_ADDRESS))
    assert (answer.status, answer.problem) == (200, "")


@pytest.mark.parametrize(
    ("name", "status"),
    [("private.example.org", 403), ("[fd00::1]", 403), ("ula.example.org", 502), ("self-ipv6.example.org", 502)],
)
def test_forbidden_addresses_stay_forbidden_over_ipv6(ipv6_bed: Ipv6Bed, name: str, status: int) -> None:
    """The resolver for Envoy leaves forbidden IPv6 addresses out, so names with no other address are not found."""
    connects = len(ipv6_bed.origins.events("connect"))
    answer = ipv6_bed.curl.get(f"http://{PAGE}/", *at(PAGE, PAGE_IPV6), "--header", f"Host: {name}")
    assert answer.status == status, answer
    assert len(ipv6_bed.origins.events("connect")) == connects


def test_tls_passes_through_by_name_and_by_original_destination(ipv6_bed: Ipv6Bed) -> None:
    named = ipv6_bed.curl.get(f"https://{PAGE}/", *at(PAGE, PAGE_IPV6, 443))
    assert (named.status, named.problem) == (200, "")
    # Without a server name, only the destination that the kernel remembers leads to the origin, which then refuses it.
    connects = len(ipv6_bed.origins.events("connect"))
    nameless = ipv6_bed.curl.get(f"https://[{ONLY_IPV6_ADDRESS}]/", "--insecure")
    assert "alert internal error" in nameless.problem
    assert len(ipv6_bed.origins.events("connect")) == connects + 1


def test_aaaa_of_a_listed_name_is_steered_and_the_query_may_come_over_ipv6(ipv6_bed: Ipv6Bed) -> None:
    answer = dig(PAGE, "AAAA", RESOLVER_IPV6, namespace=ipv6_bed.topology.clients)
    assert answer.addresses() == [PROXY_IPV6, PAGE_IPV6]
    assert ipv6_bed.dig(PAGE, "A").addresses() == [PROXY, "203.0.113.5"]
