"""A gateway as operators have it: clients behind two interfaces, another firewall beside Longhaul, a captive portal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.bed import OBJECTS
from harness.boxes.bed import Bed
from harness.boxes.pep import PROXY_NAME
from harness.clients.commands import Curl, dig
from harness.host.artifacts import REPOSITORY, built
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.net.namespaces import Namespace, veth
from harness.net.topology import CLIENT, CLIENT_DEVICE, PROXY
from harness.origins.pages import page_site

GATEWAY = REPOSITORY / "integration" / "gateway"
FOREIGN = GATEWAY / "foreign"
OTHER_DEVICE = "lan1"
OTHER_GATEWAY, OTHER_CLIENT = "192.0.2.129", "192.0.2.130"
ORIGIN = "203.0.113.31"
OTHER_PORT = 8088
"""A server on a port that Longhaul leaves alone."""
QUICKLY = ("--max-time", "3", "--connect-timeout", "2")


class GatewayBed(Bed):
    """A gateway with clients behind `lan0` and `lan1`, and the rules of `longhaul host` for both."""

    def __init__(self, folder: Path) -> None:
        authority = Authority(folder)
        site = page_site(ca=authority.files.as_dict())
        site.hosts[OBJECTS] = {"address": ORIGIN, "generate": True}
        super().__init__(folder, site, ["example.org"], authority)
        self.others = Namespace("others")

    def _load(self) -> None:
        if OTHER_DEVICE not in self.topology.gateway.ip("link"):
            self._join_others()
        self.host(self.config, "--clients", f"{CLIENT_DEVICE}:{OTHER_DEVICE}", "--apply")

    def _unload(self) -> None:
        self.host("--undo")

    def reload(self) -> None:
        """Takes the rules of Longhaul away and applies them again, as a restart of its units does."""
        self._unload()
        self._load()

    def host(self, *arguments: str | Path) -> None:
        self.topology.gateway.run(built("longhaul"), "host", *arguments, "--record", self.folder / "host.json")

    def _join_others(self) -> None:
        gateway = self.topology.gateway
        veth(self.others, OTHER_DEVICE, gateway, OTHER_DEVICE)
        gateway.ip("address", "add", f"{OTHER_GATEWAY}/25", "dev", OTHER_DEVICE)
        self.others.ip("address", "add", f"{OTHER_CLIENT}/25", "dev", OTHER_DEVICE)
        self.others.ip("route", "add", "default", "via", OTHER_GATEWAY)

    def nft(self, *arguments: str | Path) -> str:
        return self.topology.gateway.run("nft", *arguments).stdout

    def is_served(self, clients: Namespace) -> bool:
        """Returns true if a page of an origin comes to the clients through Longhaul."""
        seen = len(self.origins.requests(host=OBJECTS))
        resolved = ("--resolve", f"{OBJECTS}:80:{ORIGIN}")
        answer = Curl(self.folder, clients).get(f"http://{OBJECTS}/a.txt", *QUICKLY, *resolved)
        came = self.origins.requests(host=OBJECTS)[seen:]
        return answer.status == 200 and all(request["header"].get("Cdn-Loop") for request in came)


@pytest.fixture(scope="module")
def gateway_bed(
    root_bed: None,  # noqa: ARG001 - order of set-up
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[GatewayBed]:
    bed = GatewayBed(tmp_path_factory.mktemp("gateway"))
    with bed.others, bed:
        server = [sys.executable, "-m", "http.server", str(OTHER_PORT), "--bind", ORIGIN, "--directory", FOREIGN]
        with Child(bed.topology.internet.inside(server), bed.folder / "server.log"):
            wait_for("the other server", lambda: forwards(bed))
            yield bed


def test_clients_behind_both_interfaces_are_served_and_nobody_else(gateway_bed: GatewayBed) -> None:
    assert gateway_bed.is_served(gateway_bed.topology.clients)
    assert gateway_bed.is_served(gateway_bed.others)
    outside = Curl(gateway_bed.folder, gateway_bed.topology.internet)
    assert "connect" in outside.get(f"http://{PROXY}/", *QUICKLY).problem


def is_served(bed: GatewayBed) -> bool:
    return bed.is_served(bed.topology.clients)


def is_reached_at_its_address(bed: GatewayBed) -> bool:
    """The target of moved URLs."""
    return bed.curl.get(f"http://{PROXY}/{OBJECTS}/a.txt", *QUICKLY).status == 200


def forwards(bed: GatewayBed) -> bool:
    """Other traffic of clients, which Longhaul leaves alone."""
    return bed.curl.get(f"http://{ORIGIN}:{OTHER_PORT}/", *QUICKLY).status == 200


BROKEN = {"ufw": is_served, "firewalld": is_reached_at_its_address, "docker": forwards, "debian": is_served}
"""The traffic that each rule set cuts off before its recipe."""


@contextmanager
def foreign(bed: GatewayBed, name: str) -> Iterator[None]:
    tables = set(bed.nft("list", "tables").splitlines())
    bed.nft("-f", FOREIGN / f"{name}.nft")
    try:
        yield
    finally:
        for line in bed.nft("list", "tables").splitlines():
            if line not in tables:
                bed.nft("delete", *line.split())


@pytest.mark.parametrize(("name", "broken"), BROKEN.items(), ids=BROKEN)
def test_the_recipe_for_a_firewall_lets_clients_through(
    gateway_bed: GatewayBed, name: str, broken: Callable[[GatewayBed], bool]
) -> None:
    with foreign(gateway_bed, name):
        assert not broken(gateway_bed), "the rule set is in force"
        gateway_bed.topology.gateway.run("sh", "-e", FOREIGN / f"{name}.sh")
        for works in (is_served, is_reached_at_its_address, forwards):
            assert works(gateway_bed), works.__name__
        assert gateway_bed.dig(PROXY_NAME, "A").addresses() == [PROXY]
        assert dig(PROXY_NAME, "A", PROXY, namespace=gateway_bed.topology.clients).addresses() == [PROXY]


def test_debian_s_file_without_flush_ruleset_leaves_the_rules_alone(gateway_bed: GatewayBed) -> None:
    file = gateway_bed.folder / "nftables.conf"
    file.write_text("table inet filter\ndelete table inet filter\n" + (FOREIGN / "debian.nft").read_text())
    for _ in range(2):
        gateway_bed.nft("-f", file)
    tables = gateway_bed.nft("list", "tables").splitlines()
    gateway_bed.nft("delete", "table", "inet", "filter")
    assert sorted(tables) == ["table inet filter", "table inet longhaul"]


def test_a_captive_portal_keeps_clients_away_until_it_accepts_them(gateway_bed: GatewayBed) -> None:
    bed = gateway_bed
    bed.nft("-f", GATEWAY / "portal.nft")
    try:
        resolved = ("--resolve", f"{OBJECTS}:80:{ORIGIN}")
        for _ in range(2):
            # No portal listens in this test.
            assert "connect" in bed.curl.get(f"http://{OBJECTS}/a.txt", *QUICKLY, *resolved).problem
            assert not is_reached_at_its_address(bed)
            assert not bed.is_served(bed.topology.clients)
            bed.reload()
        bed.nft("add", "element", "inet", "portal", "accepted", f"{{ {CLIENT} }}")
        assert bed.is_served(bed.topology.clients)
        assert is_reached_at_its_address(bed)
        bed.nft("add", "element", "inet", "portal", "untouched", f"{{ {ORIGIN} }}")
        assert bed.curl.get(f"http://{OBJECTS}/b.txt", *QUICKLY, *resolved).status == 200
        assert "Cdn-Loop" not in bed.origins.requests(host=OBJECTS)[-1]["header"]
    finally:
        bed.nft("delete", "table", "inet", "portal")
