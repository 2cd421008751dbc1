"""The namespaces of an experiment: those of the test bed, with a place for a box at the clients' end of the link.

    clients ── cable ── near ── link ── gateway ── cable ── internet
    192.0.2.2           the pair's       the PEP's           203.0.113.0/24, every site
                        remote box       host

The near box only routes unless a contender puts something on it, so that every contender has the same way to go.
"""

from __future__ import annotations

import ipaddress
from contextlib import ExitStack
from pathlib import Path

from harness.net.link import Link
from harness.net.namespaces import Namespace, veth
from harness.net.topology import CLIENT, CLIENT_DEVICE, GATEWAY, Topology

NEAR_DEVICE = "home0"
"""The near box's device towards the clients."""
HOME = "192.0.2.0/25"
NEAR_HOME = "192.0.2.1"
INSTANT_RANGE = ipaddress.ip_network("198.18.0.0/15")
"""Where a remote puts listed names before the ground has responded."""
NEAR = "192.0.2.129"
FAR = "192.0.2.130"
assert GATEWAY == NEAR_HOME, "the clients' default route is the topology's"

FURTHER_PROXY_ADDRESSES = tuple(f"198.51.100.{number}" for number in range(13, 33))
"""The proxy's own addresses beside the first: one for each variant of Longhaul, and shards."""


def is_instant(address: str) -> bool:
    """Reports whether a remote has made up this address."""
    return ipaddress.ip_address(address) in INSTANT_RANGE


def join_home(clients: Namespace, near: Namespace) -> None:
    """Joins the clients to the machine at their end of the link, which routes for them."""
    veth(clients, CLIENT_DEVICE, near, NEAR_DEVICE)
    clients.ip("address", "add", f"{CLIENT}/25", "dev", CLIENT_DEVICE)
    clients.ip("route", "add", "default", "via", NEAR_HOME, "dev", CLIENT_DEVICE)
    near.ip("address", "add", f"{NEAR_HOME}/25", "dev", NEAR_DEVICE)
    near.sysctl("net.ipv4.ip_forward", 1)


class Line(Topology):
    """One line of namespaces, joined and routed, with the link emulator in the middle."""

    def __init__(self, folder: Path, profile: str, *, seed: int, changes: dict[str, str] | None = None) -> None:
        """`changes` override the profile's values."""
        super().__init__(folder, link_profile=profile, link_changes=changes)
        self._seed = seed
        self.near = Namespace("near")

    def _join_clients(self, stack: ExitStack) -> None:
        stack.enter_context(self.near)
        join_home(self.clients, self.near)
        assert self._profile
        near, far = (self.near, "sky0", f"{NEAR}/30"), (self.gateway, CLIENT_DEVICE, f"{FAR}/30")
        self.link = stack.enter_context(
            Link(self._folder, self._profile, near, far, seed=self._seed, changes=self._changes)
        )
        self.near.ip("route", "add", "default", "via", FAR, "dev", "sky0")
        self.gateway.ip("route", "add", HOME, "via", NEAR, "dev", CLIENT_DEVICE)
        for address in FURTHER_PROXY_ADDRESSES:
            self.gateway.ip("address", "add", f"{address}/32", "dev", "lo")

    def set_client_route(self, *options: str) -> None:
        """Sets TCP's options of the gateway's way to the clients, such as `initcwnd 100`; none takes them back."""
        self.gateway.ip("route", "replace", HOME, "via", NEAR, "dev", CLIENT_DEVICE, *options)

    def set_near_route(self, *options: str) -> None:
        """The same for the near box's way over the link, and for the gateway's to the near box itself."""
        self.near.ip("route", "replace", "default", "via", FAR, "dev", "sky0", *options)
        self.gateway.ip(
            "route", "replace", "192.0.2.128/30", "dev", CLIENT_DEVICE, "proto", "kernel", "scope", "link", "src", FAR,
            *options,
        )  # fmt: skip
