"""`proxy.siblings`: a connection that began at another box with the proxy's address goes on there.

client ── moves ──┬── lan0, box "old" ── wan0 ──┐
                  └── lan0, box "new" ── wan0 ──┴── internet
                              │  sibling0 joins both boxes
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pytest

from harness.host.processes import Child
from harness.net.namespaces import Namespace, veth
from harness.net.redirect import applied
from harness.net.topology import CLIENT_DEVICE

PATIENCE_S = 1.0
"""The time that a sibling has to respond (`envoy-config/render/src/host/siblings.rs`)."""
ECHO = """
import socket, sys, threading
def serve(one):
    while data := one.recv(4096):
        one.sendall(sys.argv[1].encode() + b" " + data)
with socket.create_server(("::", 80), family=socket.AF_INET6, dualstack_ipv6=True) as server:
    print("ready", flush=True)
    while True:
        threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""
"""A server that responds with its own name and the words of the client."""
CLIENT = """
import socket, sys, time
TCP_REPAIR = 19
how, source, proxy = sys.argv[1:]
with socket.socket(socket.AF_INET6 if ":" in proxy else socket.AF_INET, socket.SOCK_STREAM) as one:
    one.settimeout(20)
    one.bind((source, 0))
    one.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, how == "unknown")
    one.connect((proxy, 80))
    if how == "unknown":
        one.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 0)
    for line in sys.stdin:
        began = time.monotonic()
        try:
            one.sendall(line.encode())
            answer = one.recv(4096).decode().strip() or "closed"
        except ConnectionResetError:
            answer = "reset"
        except TimeoutError:
            answer = "silence"
        print(f"{time.monotonic() - began:.3f} {answer}", flush=True)
"""
"""A client with one connection. `unknown` begins in the middle of one, which no server knows (`TCP_REPAIR`)."""
FLOOD = """
import socket, struct, sys
source, proxy, count = sys.argv[1:]
with socket.socket(socket.AF_INET6 if ":" in proxy else socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as one:
    one.bind((source, 0))
    for number in range(int(count)):
        of, to = 1024 + number // 2, (80, 443)[number % 2]
        one.sendto(struct.pack("!HHIIBBHHH", of, to, 1, 1, 5 << 4, 0x10, 1000, 0, 0), (proxy, 0))
"""
"""A client that sends one packet of each of many connections that do not exist."""
SET_SIZE, MOST_ASKED = 65_536, 2_000
"""The size of the set of unknown connections, and the most that one client puts into it in a few seconds."""
FAMILIES: dict[str, dict[str, Any]] = {
    "ipv4": {
        "client": "192.0.2.2", "other": "192.0.2.3", "proxy": "198.51.100.12", "bits": 32,
        "old": ("192.0.2.129", "192.0.2.130", "198.51.100.33", "198.51.100.34", "198.51.100.41"),
        "new": ("192.0.2.133", "192.0.2.134", "198.51.100.37", "198.51.100.38", "198.51.100.42"),
        "length": 30,
    },
    "ipv6": {
        "client": "2001:db8:1::2", "other": "2001:db8:8::2", "proxy": "2001:db8::12", "bits": 128,
        "old": ("2001:db8:2::1", "2001:db8:2::2", "2001:db8:3::1", "2001:db8:3::2", "2001:db8:6::1"),
        "new": ("2001:db8:4::1", "2001:db8:4::2", "2001:db8:5::1", "2001:db8:5::2", "2001:db8:6::2"),
        "length": 64,
    },
}  # fmt: skip


class Boxes:
    """Both boxes, each with an echo server at the proxy's address, and a client that begins at the old one."""

    def __init__(self, folder: Path, family: str) -> None:
        self._folder = folder
        self._plan = FAMILIES[family]
        self._stack = ExitStack()
        self.proxy: str = self._plan["proxy"]
        self.origin = "2001:db8:7::1" if ":" in self.proxy else "203.0.113.5"
        self.client = Namespace("clients")
        self.internet = Namespace("internet")
        self.boxes = {"old": Namespace("old"), "new": Namespace("new")}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for namespace in (self.client, self.internet, *self.boxes.values()):
                stack.enter_context(namespace)
                namespace.sysctl("net.ipv6.conf.all.disable_ipv6", 0)
                namespace.sysctl("net.ipv6.conf.default.disable_ipv6", 0)
                namespace.sysctl("net.ipv4.ip_forward", 1)
                namespace.sysctl("net.ipv6.conf.all.forwarding", 1)
            self._address(self.client, "lo", self._plan["client"], self._plan["bits"])
            veth(self.boxes["old"], "sibling0", self.boxes["new"], "sibling0")
            for name, box in self.boxes.items():
                self._join(name, box)
            self.move("old")
            # One namespace is the origin and a router, so packets with the origin's address as source come in.
            self.internet.sysctl("net.ipv4.conf.all.accept_local", 1)
            self.internet.ip("route", "add", "local", f"{self.origin}/{self._plan['bits']}", "dev", "lo")
            if ":" in self.origin:
                self._address(self.internet, "lo", self.origin, 128)
            for name, box in {**self.boxes, "origin": self.internet}.items():
                server = Child(box.inside([sys.executable, "-c", ECHO, name]), self._folder / f"{name}.log")
                stack.callback(server.stop)
                server.wait_for_output("ready")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _address(self, namespace: Namespace, device: str, address: str, length: int) -> None:
        namespace.ip("address", "add", f"{address}/{length}", "dev", device)

    def _join(self, name: str, box: Namespace) -> None:
        near, lan, wan, far, sibling = self._plan[name]
        length = self._plan["length"]
        veth(self.client, f"{name}0", box, CLIENT_DEVICE)
        veth(box, "wan0", self.internet, f"{name}0")
        for namespace, device, address in (
            (self.client, f"{name}0", near), (box, CLIENT_DEVICE, lan), (box, "wan0", wan),
            (self.internet, f"{name}0", far), (box, "sibling0", sibling),
        ):  # fmt: skip
            self._address(namespace, device, address, length)
        self._address(box, "lo", self.proxy, self._plan["bits"])

    def move(self, to: str) -> None:
        """Changes all routes to the client, and its own."""
        client = f"{self._plan['client']}/{self._plan['bits']}"
        _, lan, wan, _, _ = self._plan[to]
        family = "-6" if ":" in lan else "-4"
        self.client.ip(family, "route", "replace", "default", "via", lan, "src", self._plan["client"])
        self.internet.ip(family, "route", "replace", client, "via", wan)
        for name, box in self.boxes.items():
            near, _, _, far, _ = self._plan[name]
            box.ip(family, "route", "replace", client, "via", near if name == to else far)
            box.ip(family, "route", "replace", "default", "via", far)

    def rules(self, name: str, *siblings: str) -> None:
        """Applies the rules of a box that has these siblings."""
        folder = self._folder / name
        folder.mkdir()
        config = {
            "link": {"rtt": "600ms", "down": "20mbit", "up": "5mbit"},
            "proxy": {"addresses": [self.proxy], "siblings": list(siblings)},
            "upstream": {"resolvers": ["203.0.113.53"]},
            "cache": "off",
        }
        path = folder / "longhaul.yaml"
        path.write_text(json.dumps(config))
        self._stack.enter_context(applied(self.boxes[name], path, folder))

    def flood(self, count: int) -> None:
        """Another client sends packets of so many made-up connections to the box of the clients."""
        other = self._plan["other"]
        self._address(self.client, "lo", other, self._plan["bits"])
        command = self.client.inside([sys.executable, "-S", "-E", "-c", FLOOD, other, self.proxy, str(count)])
        subprocess.run(command, check=True)

    def asked(self, name: str) -> int:
        """Returns the connections for which a box asked its siblings lately."""
        family = "ip6" if ":" in self.proxy else "ip"
        command = self.boxes[name].inside(["nft", "list", "set", family, "longhaul", "asked"])
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.count("expires")

    def sibling(self, name: str) -> str:
        """Returns the address of a box on the cable between both."""
        return str(self._plan[name][4])

    def connection(self, how: str = "known", to: str | None = None) -> Connection:
        """Opens a connection of the client to the proxy's address, or to another one."""
        words = [sys.executable, "-c", CLIENT, how, self._plan["client"], to or self.proxy]
        connection = Connection(self.client.inside(words))
        self._stack.callback(connection.close)
        return connection


class Connection:
    """One TCP connection of the client."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def says(self, words: str) -> tuple[str, float]:
        """Sends words. Returns the response, `reset`, `closed` or `silence`, and its time in seconds."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{words}\n")
        self._process.stdin.flush()
        time_s, _, answer = self._process.stdout.readline().strip().partition(" ")
        return answer, float(time_s)

    def close(self) -> None:
        """Ends the client."""
        self._process.communicate(timeout=30)


def says_for(connection: Connection, time_s: float) -> set[str]:
    """Sends words for so many seconds. Returns who responded."""
    end = time.monotonic() + time_s
    heard = set()
    while time.monotonic() < end:
        heard.add(connection.says("again")[0].removesuffix(" again"))
    return heard


@pytest.fixture(params=FAMILIES)
def boxes(root_bed: None, request: pytest.FixtureRequest, folder: Path) -> Iterator[Boxes]:  # noqa: ARG001 - order of set-up
    with Boxes(folder, request.param) as running:
        yield running


def test_a_connection_goes_on_at_the_box_where_it_began(boxes: Boxes) -> None:
    boxes.rules("old", boxes.sibling("new"))
    boxes.rules("new", boxes.sibling("old"))
    first = boxes.connection()
    assert first.says("a")[0] == "old a"
    boxes.move("new")
    assert says_for(first, PATIENCE_S * 2) == {"old"}
    second = boxes.connection()
    assert second.says("c")[0] == "new c", "a new connection belongs to the box where the client is"
    boxes.move("old")
    assert first.says("d")[0] == "old d"
    assert second.says("e")[0] == "new e"


def test_without_siblings_it_is_reset(boxes: Boxes) -> None:
    boxes.rules("old")
    boxes.rules("new")
    connection = boxes.connection()
    assert connection.says("a")[0] == "old a"
    boxes.move("new")
    assert connection.says("b")[0] == "reset"


def test_a_connection_that_no_box_knows_is_reset_by_the_box_of_the_client_alone(boxes: Boxes) -> None:
    boxes.rules("old", boxes.sibling("new"))
    boxes.rules("new", boxes.sibling("old"))
    answer, time_s = boxes.connection("unknown").says("a")
    assert answer == "reset"
    assert time_s > PATIENCE_S / 2, "a sibling without the connection reset it"


def test_a_connection_is_reset_while_its_box_is_away(boxes: Boxes) -> None:
    boxes.rules("old", boxes.sibling("new"))
    boxes.rules("new", boxes.sibling("old"))
    connection = boxes.connection()
    assert connection.says("a")[0] == "old a"
    boxes.boxes["old"].ip("link", "set", "sibling0", "down")
    boxes.move("new")
    answer, time_s = connection.says("b")
    assert answer == "reset"
    assert time_s > PATIENCE_S / 2
    assert boxes.connection().says("c")[0] == "new c"


def test_an_intercepted_connection_goes_on_at_the_box_that_intercepted_it(boxes: Boxes) -> None:
    boxes.rules("old", boxes.sibling("new"))
    boxes.rules("new", boxes.sibling("old"))
    first = boxes.connection(to=boxes.origin)
    assert first.says("a")[0] == "old a"
    boxes.move("new")
    assert says_for(first, PATIENCE_S * 2) == {"old"}
    assert boxes.connection(to=boxes.origin).says("d")[0] == "new d"
    boxes.move("old")
    assert first.says("e")[0] == "old e"


def test_a_connection_that_nobody_intercepted_goes_on_at_the_origin(boxes: Boxes) -> None:
    first = boxes.connection(to=boxes.origin)
    assert first.says("a")[0] == "origin a"
    boxes.rules("old", boxes.sibling("new"))
    boxes.rules("new", boxes.sibling("old"))
    boxes.move("new")
    assert says_for(first, PATIENCE_S * 2) == {"origin"}
    boxes.move("old")
    assert first.says("d")[0] == "origin d"


def test_a_client_with_many_made_up_connections_does_not_keep_others_from_moving(boxes: Boxes) -> None:
    boxes.rules("old", boxes.sibling("new"))
    boxes.rules("new", boxes.sibling("old"))
    connection = boxes.connection()
    assert connection.says("a")[0] == "old a"
    boxes.move("new")
    boxes.flood(SET_SIZE + 10_000)
    assert 0 < boxes.asked("new") < MOST_ASKED
    assert says_for(connection, PATIENCE_S * 2) == {"old"}
