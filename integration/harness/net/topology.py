"""The three namespaces of every end-to-end test: clients, the PEP's host, the wired Internet.

    clients                       gateway (the PEP's host)                internet
    192.0.2.2 ── link or cable ── 192.0.2.1 ... 198.51.100.1 ── cable ── 198.51.100.2
                                  198.51.100.12, the proxy address        203.0.113.0/24, every site
                                                                          10.66.0.1, 169.254.169.254: out of bounds

Documentation ranges (RFC 5737) stand for public addresses: neither browsers nor the proxy's guard treat them as
private. The forbidden addresses really exist behind the gateway, so a failure of the guard shows as a connection.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from .link import Link
from .namespaces import Namespace, veth

CLIENT = "192.0.2.2"
GATEWAY = "192.0.2.1"
CLIENT_NETWORK = "192.0.2.0/24"
CLIENT_DEVICE = "lan0"
PROXY = "198.51.100.12"
PROXY_RANGE = "198.18.0.0/16"
"""Each server behind a steered name has an address of the proxy of its own here."""
INTERNET = "198.51.100.2"
SITES = ipaddress.ip_network("203.0.113.0/24")
RESOLVER = "203.0.113.53"
PROXY_IPV6 = "2001:db8::12"
SITES_IPV6 = ipaddress.ip_network("2001:db8:3::/64")
PRIVATE_ADDRESS = "10.66.0.1"
LINK_LOCAL_ADDRESS = "169.254.169.254"
FORBIDDEN = {
    "private.example.org": PRIVATE_ADDRESS,
    "metadata.example.org": LINK_LOCAL_ADDRESS,
    "loopback.example.org": "127.0.0.1",
    "self.example.org": PROXY,
    "self-lan.example.org": GATEWAY,
}
"""Names of sites whose addresses no client may reach through a proxy."""


def leads_to_proxy(address: str) -> bool:
    """Reports whether clients reach the proxy at this address."""
    return address == PROXY or ipaddress.ip_address(address) in ipaddress.ip_network(PROXY_RANGE)


def site_addresses() -> Iterable[str]:
    """Returns addresses for sites, one after the other, without the resolver's."""
    return (str(address) for address in SITES.hosts() if str(address) != RESOLVER)


class Topology:
    """The namespaces, joined and routed. `link_profile` puts the link emulator between clients and gateway, and
    `wan_profile` between gateway and Internet."""

    def __init__(
        self,
        folder: Path,
        *,
        link_profile: str | None = None,
        link_changes: dict[str, str] | None = None,
        wan_profile: str | None = None,
        ipv6: bool = False,
    ) -> None:
        self._folder = folder
        self._ipv6 = ipv6
        self._profile = link_profile
        self._changes = link_changes
        self._wan_profile = wan_profile
        self._stack = ExitStack()
        resolv_conf = folder / "resolv.conf"
        # With a single attempt, a lost packet would look like a failed name. Five seconds are the usual timeout of
        # resolvers.
        resolv_conf.write_text(f"nameserver {RESOLVER}\noptions timeout:5 attempts:2\n")
        self.clients = Namespace("clients", resolv_conf=resolv_conf)
        self.gateway = Namespace("gateway")
        self.internet = Namespace("internet")
        self.link: Link | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for namespace in (self.clients, self.gateway, self.internet):
                stack.enter_context(namespace)
            self._join_clients(stack)
            self._join_internet(stack)
            if self._ipv6:
                self._add_ipv6()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def _join_clients(self, stack: ExitStack) -> None:
        if self._profile is None:
            veth(self.clients, CLIENT_DEVICE, self.gateway, CLIENT_DEVICE)
            self.clients.ip("address", "add", f"{CLIENT}/24", "dev", CLIENT_DEVICE)
            self.gateway.ip("address", "add", f"{GATEWAY}/24", "dev", CLIENT_DEVICE)
        else:
            ends = (self.clients, CLIENT_DEVICE, f"{CLIENT}/24"), (self.gateway, CLIENT_DEVICE, f"{GATEWAY}/24")
            self.link = stack.enter_context(Link(self._folder, self._profile, *ends, changes=self._changes))
        self.clients.ip("route", "add", "default", "via", GATEWAY, "dev", CLIENT_DEVICE)

    def _join_internet(self, stack: ExitStack) -> None:
        self.gateway.ip("address", "add", f"{PROXY}/32", "dev", "lo")
        self.gateway.ip("route", "add", "local", PROXY_RANGE, "dev", "lo")
        self.gateway.sysctl("net.ipv4.ip_forward", 1)
        if self._wan_profile is None:
            veth(self.gateway, "wan0", self.internet, "wan0")
            self.gateway.ip("address", "add", "198.51.100.1/30", "dev", "wan0")
            self.internet.ip("address", "add", f"{INTERNET}/30", "dev", "wan0")
        else:
            ends = (self.gateway, "wan0", "198.51.100.1/30"), (self.internet, "wan0", f"{INTERNET}/30")
            stack.enter_context(Link(self._folder, self._wan_profile, *ends))
        self.internet.ip("route", "add", "default", "via", "198.51.100.1")
        for reached in (str(SITES), f"{PRIVATE_ADDRESS}/32", f"{LINK_LOCAL_ADDRESS}/32"):
            # "local" lets one machine have every address of a range without the configuration of each.
            self.internet.ip("route", "add", "local", reached, "dev", "lo")
            self.gateway.ip("route", "add", reached, "via", INTERNET)

    def _add_ipv6(self) -> None:
        """Adds IPv6 to all three namespaces, with the same routes."""
        for namespace in (self.clients, self.gateway, self.internet):
            namespace.sysctl("net.ipv6.conf.all.disable_ipv6", 0)
        self.gateway.sysctl("net.ipv6.conf.all.forwarding", 1)
        for namespace, address, device in (
            (self.clients, "2001:db8:1::2/64", CLIENT_DEVICE),
            (self.gateway, "2001:db8:1::1/64", CLIENT_DEVICE),
            (self.gateway, f"{PROXY_IPV6}/128", "lo"),
            (self.gateway, "2001:db8:2::1/64", "wan0"),
            (self.internet, "2001:db8:2::2/64", "wan0"),
        ):
            namespace.ip("address", "add", address, "dev", device)
        self.clients.ip("-6", "route", "add", "default", "via", "2001:db8:1::1")
        self.internet.ip("-6", "route", "add", "default", "via", "2001:db8:2::1")
        # Unlike in IPv4, a local route is not enough for a server to bind one of its addresses.
        self.internet.sysctl("net.ipv6.ip_nonlocal_bind", 1)
        self.internet.ip("-6", "route", "add", "local", str(SITES_IPV6), "dev", "lo")
        self.gateway.ip("-6", "route", "add", str(SITES_IPV6), "via", "2001:db8:2::2")

    def widen_initial_window(self, segments: int | None) -> None:
        """Sets the initial window towards the clients, as the operator of a long fat link does. None resets it."""
        window = ["initcwnd", str(segments), "initrwnd", str(segments)] if segments else []
        self.gateway.ip(
            "route", "replace", CLIENT_NETWORK, "dev", CLIENT_DEVICE, "proto", "kernel", "scope", "link",
            "src", GATEWAY, *window,
        )  # fmt: skip
