"""The bed of `make bench ONLY=operator-product`: a pair on an emulated link, with a cause of slowness at a place
that the bench chooses.

    wlan ── its own network ──┐
    clients ── cable ── remote ── link ── ground ── way to the origins ── resolver, origins
                         └─ something beside Longhaul fills the link
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.boxes.pair import FAIR, REDIRECTS, Ends, Pair, pair
from harness.boxes.pep import command
from harness.lab import links
from harness.lab.contenders.base import intercept, rules
from harness.lab.line import FAR, NEAR, NEAR_DEVICE, NEAR_HOME, Line
from harness.net.authority import Authority
from harness.net.link import Link
from harness.net.namespaces import Namespace
from harness.net.sockets import socket_in
from harness.net.topology import RESOLVER, site_addresses
from harness.origins.program import Origins, Site

CAUSES = ("round_trip", "loss", "queue", "rate", "resolver", "place", "origin", "client_network")
HOSTS = 600
"""The names that clients may visit. Each is visited once, so that each is looked up."""
WLAN = ("wlan0", "192.168.7.1", "192.168.7.2")
DEVICE = """title = "A way of {delay_ms} ms"
source = "made up for this bench"
mtu_bytes = 1500
[down]
delay_ms = {delay_ms}
queue_bytes = 1500000
[up]
delay_ms = {delay_ms}
queue_bytes = 1500000
"""
FAR_MS, WLAN_MS = 75, 100
"""One way, to origins across an ocean and to a client far from its access point."""
RESOLVER_S = 0.6
ORIGIN_MS = 1200
QUEUE_BYTES = 800_000
"""320 ms of the link's rate."""
LOSS = {"down.random_loss": "0.03", "up.random_loss": "0.03"}
LONGER = {"down.delay_ms": "600", "up.delay_ms": "600"}
DNS_PORT = 5300
"""Where the name server listens if the resolver in front of it is slow."""


def way_of(delay_ms: int, folder: Path) -> Path:
    """Writes the profile of a way with a delay alone."""
    folder.mkdir()
    path = folder / "way.toml"
    path.write_text(DEVICE.format(delay_ms=delay_ms))
    return path


class FarLine(Line):
    """The line, with origins that may be far away."""

    def __init__(self, folder: Path, profile: str, *, changes: dict[str, str], is_far: bool) -> None:
        super().__init__(folder, profile, seed=1, changes=changes)
        self._is_far = is_far

    def _join_internet(self, stack: ExitStack) -> None:
        folder = self._folder
        if self._is_far:
            self._folder = folder / "far"
            self._wan_profile = str(way_of(FAR_MS, self._folder))
        super()._join_internet(stack)
        self._folder = folder


@dataclass
class Bed:
    """The running bed."""

    folder: Path
    line: Line
    pair: Pair
    authority: Authority
    wlan: Namespace | None
    habits: dict[str, Any] = field(default_factory=dict)
    """The habits of the clients, for `surfing`."""

    def status(self, *options: str) -> str:
        """The words of `longhaul status` at the remote."""
        return command("status", "--state", self.pair.remote.state, *options).stdout

    def page(self, path: str) -> tuple[int, float]:
        """The bytes and the seconds of a page of the remote."""
        line = ["curl", "--silent", "--fail", "--output", "/dev/null", "--write-out", "%{size_download} %{time_total}"]
        done = subprocess.run(
            self.line.near.inside([*line, f"http://127.0.0.1:9900{path}"]), capture_output=True, text=True, check=True
        )
        size, seconds = done.stdout.split()
        return int(size), float(seconds)


@contextmanager
def product_bed(folder: Path, profile: str, injected: Collection[str] = ()) -> Iterator[Bed]:
    """Starts a pair whose file has the link's true values, and injects causes."""
    changes = (LOSS if "loss" in injected else {}) | (LONGER if "round_trip" in injected else {})
    authority = Authority(folder)
    with ExitStack() as stack:
        line = stack.enter_context(FarLine(folder, profile, changes=changes, is_far="place" in injected))
        is_slow = "resolver" in injected
        site = origins(authority, DNS_PORT if is_slow else 53)
        stack.enter_context(Origins(site.write(folder / "site.json"), folder, line.internet))
        if is_slow:
            stack.enter_context(slow_resolver(line.internet))
        ends = Ends(line.near, NEAR_HOME, line.gateway, FAR)
        setting = FAIR | links.link(profile).setting
        both = stack.enter_context(pair(folder, ends, setting, trusted=authority.files.cert))
        stack.enter_context(rules(line.near, intercept(NEAR_DEVICE, *REDIRECTS)))
        wlan = stack.enter_context(own_network(line, folder)) if "client_network" in injected else None
        if "queue" in injected:
            stack.enter_context(filled_queue(line))
        both.until_piped()
        habits = {"wait_ms": ORIGIN_MS if "origin" in injected else 0, "greedy": 6 if "rate" in injected else 0}
        yield Bed(folder, line, both, authority, wlan, habits)


def origins(authority: Authority, dns_port: int) -> Site:
    """Many names, on few addresses."""
    site = Site(dns=[f"{RESOLVER}:{dns_port}"], https_port=443, ca=authority.files.as_dict())
    addresses = [address for _, address in zip(range(HOSTS), site_addresses(), strict=False)]
    for number in range(HOSTS):
        address = addresses[number % len(addresses)]
        site.hosts[f"h{number}.example.org"] = {"address": address, "generate": True, "special": True}
    return site


@contextmanager
def own_network(line: Line, folder: Path) -> Iterator[Namespace]:
    """A client whose own network is slow, beside the others."""
    device, box, client = WLAN
    resolv_conf = folder / "wlan-resolv.conf"
    resolv_conf.write_text(f"nameserver {RESOLVER}\noptions timeout:5 attempts:2\n")
    place = folder / "wlan"
    with Namespace("wlan", resolv_conf=resolv_conf) as wlan:
        way = way_of(WLAN_MS, place)
        with Link(place, str(way), (wlan, "wlan0", f"{client}/24"), (line.near, device, f"{box}/24")):
            wlan.ip("route", "add", "default", "via", box)
            with rules(line.near, intercept(device, *REDIRECTS), table="wlan"):
                yield wlan


@contextmanager
def slow_resolver(namespace: Namespace) -> Iterator[None]:
    """A resolver that passes queries to the name server and each response back after a while."""
    at, over = socket_in(namespace, 2), threading.Event()
    at.bind((RESOLVER, 53))
    at.settimeout(0.2)

    def answer(query: bytes, client: Any) -> None:
        with socket_in(namespace, 2) as there:
            there.settimeout(2)
            there.sendto(query, (RESOLVER, DNS_PORT))
            response = there.recv(4096)
        time.sleep(RESOLVER_S)
        at.sendto(response, client)

    def serve() -> None:
        while not over.is_set():
            try:
                query, client = at.recvfrom(4096)
            except TimeoutError:
                continue
            threading.Thread(target=answer, args=(query, client), daemon=True).start()

    with at, meanwhile(serve, over):
        yield


@contextmanager
def filled_queue(line: Line) -> Iterator[None]:
    """Datagrams past Longhaul that keep the queue of the link at a level, without a loss."""
    assert line.link
    link, over = line.link, threading.Event()
    sink, source = socket_in(line.near, 2), socket_in(line.internet, 2)
    sink.bind((NEAR, 7000))
    datagram = bytes(1400)

    def keep() -> None:
        while not over.is_set():
            lacking = QUEUE_BYTES - link.statistics()["down"]["queue"]["now_bytes"]
            for _ in range(max(0, min(lacking, 100_000)) // 1428):
                source.sendto(datagram, (NEAR, 7000))
            time.sleep(0.01)

    with sink, source, meanwhile(keep, over):
        yield


@contextmanager
def meanwhile(work: Callable[[], None], over: threading.Event) -> Iterator[None]:
    """Runs `work` in a thread. It ends once `over` is set."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
