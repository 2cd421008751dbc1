"""`compare`: a share of the clients passes untouched, and `longhaul status` compares both groups.

The link is between the gateway and the Internet here, so that a connection through the gateway takes its round trip."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.boxes.bed import Bed
from harness.boxes.pep import PROXY_NAME
from harness.clients.commands import Answer, dig
from harness.host.artifacts import REPOSITORY, built
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.net.topology import CLIENT_DEVICE, RESOLVER, leads_to_proxy
from harness.origins.pages import page_site

PAGE, PAGE_ADDRESS = "www.demo.test", "203.0.113.5"
CLIENTS = [f"192.0.2.{number}" for number in range(130, 160)]
PERCENT = 45
RTT_US = 80_000
"""The profile `rural-lte`."""
ROUNDS = 3
"""The pages that each client gets, so that each group has the 30 connections that a median needs."""
REPORTED_S = 15
"""The longest time until a run reports figures: an interval of 5 s, under load."""


class CompareBed(Bed):
    """A gateway with many clients and the rules of `longhaul host`."""

    def __init__(self, folder: Path, intercept: str) -> None:
        authority = Authority(folder)
        site = page_site(ca=authority.files.as_dict())
        root = REPOSITORY / "integration" / "site" / PAGE
        site.hosts[PAGE] = {"address": PAGE_ADDRESS, "root": str(root)}
        listen = {"http": "0.0.0.0:80", "tls": "0.0.0.0:443", "dns": "0.0.0.0:53", "intercept": intercept}
        super().__init__(
            folder, site, ["demo.test"], authority, wan_profile="rural-lte", compare=f"{PERCENT}%", listen=listen
        )

    def _load(self) -> None:
        for address in CLIENTS:
            self.topology.clients.ip("address", "replace", f"{address}/24", "dev", CLIENT_DEVICE)
        self.host(self.config, "--clients", CLIENT_DEVICE, "--apply")

    def _unload(self) -> None:
        self.host("--undo")

    def host(self, *arguments: str | Path) -> None:
        """Runs `longhaul host` on the gateway."""
        self.topology.gateway.run(built("longhaul"), "host", *arguments, "--record", self.folder / "host.json")

    def status(self, *options: str) -> str:
        """Returns the output of `longhaul status`."""
        done = self.topology.gateway.run(built("longhaul"), "status", "--state", self.pep.state, *options, check=False)
        return done.stdout

    def compared(self) -> dict[str, Any]:
        """Returns the figures of both groups."""
        return json.loads(self.status("--json"))["compared"]

    def steered(self, client: str) -> bool:
        """Returns true if DNS leads a client to the proxy."""
        answer = dig(PAGE, "A", RESOLVER, "-b", client, namespace=self.topology.clients)
        assert answer.addresses()[-1] == PAGE_ADDRESS, answer
        return leads_to_proxy(answer.addresses()[0])

    def rewritten(self, client: str) -> bool:
        """Returns true if a client that knows the address of the site gets a rewritten page."""
        answer = self.page(client)
        assert (answer.status, answer.problem) == (200, ""), answer
        return f"https://{PROXY_NAME}/".encode() in answer.body

    def page(self, client: str) -> Answer:
        """Returns the page that a client gets."""
        return self.curl.get(f"http://{PAGE}/", "--interface", client, "--resolve", f"{PAGE}:80:{PAGE_ADDRESS}")

    def each(self, way: str, times: int = 1) -> list[bool]:
        """Returns the result of a method for each client, several at once."""
        with ThreadPoolExecutor(6) as pool:
            return list(pool.map(getattr(self, way), CLIENTS * times))


@pytest.fixture(scope="module", params=["redirect", pytest.param("tproxy", marks=pytest.mark.long)])
def compare_bed(
    root_bed: None,  # noqa: ARG001 - order of set-up
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[CompareBed]:
    with CompareBed(tmp_path_factory.mktemp("compare"), request.param) as running:
        yield running


def test_the_same_share_of_clients_passes_untouched_each_time_and_both_groups_are_measured(
    compare_bed: CompareBed,
) -> None:
    assert "no connection was seen yet" in wait_for("the group", lambda: row(compare_bed.status(), "compared"))
    steered = compare_bed.each("steered")
    direct = CLIENTS[steered.index(False)]
    original = compare_bed.original(f"http://{PAGE}/").body
    assert compare_bed.page(direct).body == original
    # DNS and the packet rules choose the same clients: about the share, and always the same.
    assert compare_bed.each("rewritten", ROUNDS) == steered * ROUNDS
    assert len(CLIENTS) * PERCENT / 200 < steered.count(False) < len(CLIENTS) * PERCENT * 3 / 200, steered

    found = wait_for("both medians", lambda: measured(compare_bed.compared()), REPORTED_S, interval_s=0.5)
    untouched_us, with_longhaul_us = (found[group]["set_up"]["known"] for group in ("direct", "accelerated"))
    # Under load a packet may wait, but none is early.
    assert RTT_US <= untouched_us["low_us"] <= untouched_us["median_us"] < 1.5 * RTT_US, found
    assert with_longhaul_us["low_us"] <= with_longhaul_us["median_us"] < RTT_US / 4, found
    assert found["difference"]["set_up"]["faster"]["by_us"] > RTT_US / 2
    assert RTT_US <= found["direct"]["first_bytes"]["known"]["median_us"] < 2 * RTT_US, found
    # Chance may leave a client in neither group, but nobody is in both.
    seen = sum(found[group]["set_up"]["known"]["connections"] for group in ("direct", "accelerated"))
    assert seen <= len(CLIENTS) * ROUNDS + 1, found
    text = compare_bed.status()
    assert row(text, "set-up"), text
    assert " ms shorter" in text, text
    assert "problem:" not in text
    assert "compare" not in "".join(line for line in text.splitlines() if line.startswith("warning:"))
    assert not [address for address in CLIENTS if address in compare_bed.status("--json")], "a report holds no client"

    # The rules go away as a whole and come back the same.
    with compare_bed.without_longhaul():
        assert "longhaul" not in compare_bed.topology.gateway.run("nft", "list", "tables").stdout
    assert compare_bed.each("rewritten") == steered


def row(status: str, name: str) -> str:
    """Returns the row of `longhaul status`."""
    lines = [line for line in status.splitlines() if line.startswith(f"{name} ")]
    return lines[0] if lines else ""


def measured(compared: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the figures once each group has its medians."""
    groups = [compared[group] for group in ("direct", "accelerated")]
    return compared if all("known" in group[time] for group in groups for time in ("set_up", "first_bytes")) else None
