"""A client between two regions, each with its own link and gateway. It moves in the middle of a page.

    clients ── link ── gateway "old" ── cable ──┐
    192.0.2.2                                 internet, every site
           └── link ── gateway "new" ── cable ──┘

The client keeps its address, as on a mobile network, and its routes change. Every gateway with a PEP holds the proxy's
address. All PEPs of an operator share it, so that each of them serves the URLs that another one rewrote.

Siblings have one more cable between the gateways. Over it, a gateway sends the packets of connections that began at the
other one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from harness.boxes.pep import Pep, gateway_config, write_config
from harness.browsers.chromium import Browser, Request, browser, requests_of
from harness.clients.moved import true_url
from harness.host.waiting import wait_for
from harness.lab import links
from harness.lab.pages import Page, make_page
from harness.lab.tables import page_table
from harness.net.authority import Authority
from harness.net.link import Link
from harness.net.namespaces import Namespace, veth
from harness.net.redirect import applied, redirected
from harness.net.topology import CLIENT, CLIENT_DEVICE, PROXY, RESOLVER, SITES, site_addresses
from harness.origins.program import Origins, Site

LINK = "rural-lte"
PAGE = "cnn"
MOVES_AFTER = 20
"""Objects that have loaded when the client moves. The page is known by then, and most of it has yet to arrive."""


@dataclass(frozen=True)
class Scenario:
    """The regions that have a PEP: the three cases of Rodriguez et al., WWW 2004, section 5."""

    name: str
    title: str
    old: bool
    new: bool


SCENARIOS = {
    one.name: one
    for one in (
        Scenario("a", "from a region without a PEP into one with", old=False, new=True),
        Scenario("b", "from one PEP's region into another's", old=True, new=True),
        Scenario("c", "out of a PEP's region into one without", old=True, new=False),
    )
}


@dataclass(frozen=True)
class Journey:
    """The outcome of one page during which the client moved."""

    expected: int
    loaded: int
    absent: list[str]
    requests: list[Request]
    moved_after: int
    """Objects that had loaded when the client moved."""
    load_ms: float
    whole_when_reloaded: bool

    @property
    def complete(self) -> bool:
        """Returns whether every object of the page loaded in the end."""
        return not self.absent


@dataclass
class Region:
    """One gateway with its link, its route to the Internet, and possibly its PEP."""

    name: str
    gateway: Namespace
    client_side: str
    gateway_side: str
    wan: str
    internet_side: str
    device: str
    sibling_side: str
    """Its address on the cable to the other gateway."""


class Roaming:
    """Both regions, the sites, and the client, which begins in the old region."""

    def __init__(self, folder: Path, scenario: Scenario, *, target: str = "auto", siblings: bool = False) -> None:
        """With `siblings`, each PEP names the other one in `proxy.siblings`. Both have the rules of `longhaul host`."""
        assert not siblings or (scenario.old and scenario.new), "a sibling is a PEP"
        self._folder = folder
        self._scenario = scenario
        self._siblings = siblings
        self._target = target
        self._stack = ExitStack()
        self._links: dict[str, Link] = {}
        self.authority = Authority(folder)
        self.page: Page = make_page(page_table(PAGE))
        resolv_conf = folder / "resolv.conf"
        resolv_conf.write_text(f"nameserver {RESOLVER}\noptions timeout:2 attempts:3\n")
        self.clients = Namespace("clients", resolv_conf=resolv_conf)
        self.internet = Namespace("internet")
        self.old = Region(
            "old",
            Namespace("old"),
            "192.0.2.129",
            "192.0.2.130",
            "198.51.100.33",
            "198.51.100.34",
            "sky1",
            "198.51.100.41",
        )
        self.new = Region(
            "new",
            Namespace("new"),
            "192.0.2.133",
            "192.0.2.134",
            "198.51.100.37",
            "198.51.100.38",
            "sky2",
            "198.51.100.42",
        )

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.clients)
            stack.enter_context(self.internet)
            self.clients.ip("address", "add", f"{CLIENT}/32", "dev", "lo")
            self.internet.ip("route", "add", "local", str(SITES), "dev", "lo")
            for region in (self.old, self.new):
                self._join(stack, region)
            if self._siblings:
                self._join_siblings()
            self._go(self.old)
            site = Site(dns=[f"{RESOLVER}:53"], https_port=443, ca=self.authority.files.as_dict())
            self.page.add_to(site, self._folder, iter(site_addresses()))
            stack.enter_context(Origins(site.write(self._folder / "site.json"), self._folder, self.internet))
            for region, has_pep in ((self.old, self._scenario.old), (self.new, self._scenario.new)):
                if has_pep:
                    stack.enter_context(self._pep(region))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _join(self, stack: ExitStack, region: Region) -> None:
        stack.enter_context(region.gateway)
        folder = self._folder / region.name
        folder.mkdir()
        near = (self.clients, region.device, f"{region.client_side}/30")
        far = (region.gateway, CLIENT_DEVICE, f"{region.gateway_side}/30")
        self._links[region.name] = stack.enter_context(Link(folder, LINK, near, far))
        veth(region.gateway, "wan0", self.internet, f"{region.name}0")
        region.gateway.ip("address", "add", f"{region.wan}/30", "dev", "wan0")
        self.internet.ip("address", "add", f"{region.internet_side}/30", "dev", f"{region.name}0")
        region.gateway.ip("route", "add", "default", "via", region.internet_side)
        region.gateway.sysctl("net.ipv4.ip_forward", 1)
        # Connections that began in the other region are unknown here. Their packets are forwarded to their destination.
        region.gateway.run("sysctl", "-qw", "net.netfilter.nf_conntrack_tcp_loose=0", check=False)
        self.internet.sysctl("net.ipv4.ip_forward", 1)

    def _join_siblings(self) -> None:
        veth(self.old.gateway, "sibling0", self.new.gateway, "sibling0")
        for region in (self.old, self.new):
            region.gateway.ip("address", "add", f"{region.sibling_side}/30", "dev", "sibling0")

    @contextmanager
    def _pep(self, region: Region) -> Iterator[None]:
        folder = self._folder / region.name
        region.gateway.ip("address", "add", f"{PROXY}/32", "dev", "lo")
        certificate = self.authority.issue(PROXY).as_dict()
        proxy: dict[str, list[str]] = {"addresses": [PROXY], "secure_names": [PROXY]}
        if self._siblings:
            proxy["siblings"] = [one.sibling_side for one in (self.old, self.new) if one is not region]
        changes = {
            "link": links.link(LINK).setting, "rewrite": {"level": "safe", "target": self._target}, "proxy": proxy,
        }  # fmt: skip
        config = write_config(
            folder, gateway_config(folder, certificate, secure_name=PROXY, **changes), self.page.hosts
        )
        with (
            Pep(config, folder, region.gateway, trusted=self.authority.files.cert),
            self._rules(region, config, folder),
        ):
            yield

    def _rules(self, region: Region, config: Path, folder: Path) -> AbstractContextManager[None]:
        if self._siblings:
            return applied(region.gateway, config, folder)
        # Clients that have roamed to the other region come in from the Internet side, and are still served.
        return redirected(region.gateway, folder, clients=f'{{"{CLIENT_DEVICE}","wan0"}}')

    def _go(self, region: Region) -> None:
        """Moves the client to this region, and changes all routes to it."""
        self.clients.ip("route", "replace", "default", "via", region.gateway_side, "dev", region.device, "src", CLIENT)
        for one in (self.old, self.new):
            way = region.client_side if one is region else one.internet_side
            one.gateway.ip("route", "replace", f"{CLIENT}/32", "via", way)
        self.internet.ip("route", "replace", f"{CLIENT}/32", "via", region.wan)
        home = region if self._has_pep(region) else self.old
        if self._has_pep(home):
            self.internet.ip("route", "replace", f"{PROXY}/32", "via", home.wan)

    def _has_pep(self, region: Region) -> bool:
        return self._scenario.old if region is self.old else self._scenario.new

    def new_link_bytes(self) -> int:
        """Returns the bytes that the new region's link has delivered to the client."""
        return self._links["new"].statistics()["down"]["delivered"]["bytes"]

    def journey(self, *, moves: bool = True, timeout_s: float = 90.0) -> Journey:
        """Loads the page. The client moves when some of it has arrived."""
        self._go(self.old)
        with browser(self._folder, self.clients, self.authority) as fresh:
            return self._journey(fresh, moves, timeout_s)

    def _journey(self, fresh: Browser, moves: bool, timeout_s: float) -> Journey:
        url = self.page.url("http")
        moved_after = 0
        with fresh.tab() as tab:
            tab.call("Page.navigate", timeout_s=timeout_s, url=url)

            def finished() -> int:
                return sum(one["method"] == "Network.loadingFinished" for one in tab.events())

            def over() -> bool:
                return any(one["method"] == "Page.loadEventFired" for one in tab.events())

            if moves:
                wait_for(f"{MOVES_AFTER} objects", lambda: finished() >= MOVES_AFTER or over(), timeout_s, 0.005)
                moved_after = finished()
                self._go(self.new)
            wait_for(f"the load event of {url}", over, timeout_s)
            load_ms = tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
            requests = list(requests_of(tab.events()))
        absent = self._absent(requests)
        # A user who sees that pictures are missing reloads the page.
        reloaded = not absent or not self._absent(fresh.load(url, timeout_s=timeout_s, settle_s=0.3).requests)
        expected = len(self.page.urls("http"))
        return Journey(expected, expected - len(absent), absent, requests, moved_after, float(load_ms or 0), reloaded)

    def _absent(self, requests: list[Request]) -> list[str]:
        loaded = {true_url(one.url, {PROXY}) for one in requests if one.loaded}
        return sorted(set(self.page.urls("http")) - loaded)
