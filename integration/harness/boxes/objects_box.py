"""An edge on loopback whose cache is `longhaul-objects`, an origin of objects behind it, and clients that check every
body."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any

from harness.host.artifacts import built
from harness.host.ports import free_ports
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.net.relay import Relay
from harness.origins.http1 import Client, Message, Origin

from .pep import Pep, command, write_config

WWW = "www.example.org"
SHIP = "ship.test"
GROUND = "127.0.0.2"
"""The address of the ground of a pair."""
STEERED_NAMES = ("example.org",)
KEPT = {"Cache-Control": "max-age=600"}
"""The field of a response that every cache may keep."""
PIECE = 64 << 10
"""The bytes of a large body that are sent at a time."""
PAUSE_S = 0.005
"""The pause between two requests of one client. It leaves a small machine time to serve them."""

Made = tuple[int, Mapping[str, str], bytes]
"""A response: its status, fields and body."""


class Shelf:
    """An origin with the objects that a test puts there. It counts the requests for each."""

    def __init__(self, *, closes: bool = False) -> None:
        """With `closes`, it closes the connection after each response. No connection outlives the origin then."""
        self._made: dict[str, Callable[[Message], Made]] = {}
        self._streams: dict[str, Callable[[Message], Iterable[bytes]]] = {}
        self._closes = closes
        self._sent = 0
        self._lock = threading.Lock()
        self.origin = Origin(self._answer)

    @property
    def address(self) -> str:
        """Its address and port."""
        return f"127.0.0.1:{self.origin.port}"

    def put(self, path: str, body: bytes, fields: Mapping[str, str] = KEPT) -> str:
        """Puts an object there. Returns its path."""
        return self.make(path, lambda _: (200, fields, body))

    def make(self, path: str, made: Callable[[Message], Made]) -> str:
        """Makes the response from each request. Returns the path."""
        self._made[path] = made
        return path

    def stream(self, path: str, answer: Callable[[Message], Iterable[bytes]]) -> str:
        """Sends the bytes that `answer` yields for a request, with the head. Returns the path."""
        self._streams[path] = answer
        return path

    def put_in_parts(self, path: str, body: bytes, fields: Mapping[str, str] = KEPT) -> str:
        """Puts a large object there, whose ranges can be had. `sent_in_parts` counts its bytes. Returns the path."""
        every = {"ETag": '"1"', "Accept-Ranges": "bytes", **fields}

        def answer(request: Message) -> Iterator[bytes]:
            status, first, last = 200, 0, len(body) - 1
            asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.get("range") or "")
            if asked and (request.get("if-range") or '"1"') == '"1"':
                status, first, last = 206, int(asked[1]), min(int(asked[2] or last), last)
            part = body[first : last + 1]
            own = {"Content-Range": f"bytes {first}-{last}/{len(body)}"} if status == 206 else {}
            head = {"Date": formatdate(usegmt=True), "Content-Length": str(len(part)), **every, **own}
            lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
            yield f"HTTP/1.1 {status} Made\r\n{lines}\r\n".encode()
            for at in range(0, len(part), PIECE):
                piece = part[at : at + PIECE]
                with self._lock:
                    self._sent += len(piece)
                yield piece

        return self.stream(path, answer)

    @property
    def sent_in_parts(self) -> int:
        """The bytes that were sent of objects whose ranges can be had."""
        with self._lock:
            return self._sent

    def requests(self, path: str) -> list[Message]:
        """Returns the requests for a path so far."""
        return [one for one in self.origin.requests if one.target == path]

    def asked(self, path: str) -> int:
        """Returns the number of requests for a path so far."""
        return len(self.requests(path))

    def _answer(self, request: Message) -> Iterable[bytes]:
        if stream := self._streams.get(request.target):
            yield from stream(request)
            return
        made = self._made.get(request.target)
        status, fields, body = made(request) if made else (404, {}, b"no such object\n")
        closing = {"Connection": "close"} if self._closes else {}
        every = {"Date": formatdate(usegmt=True), "Content-Length": str(len(body)), **fields, **closing}
        lines = "".join(f"{name}: {value}\r\n" for name, value in every.items())
        yield f"HTTP/1.1 {status} Made\r\n{lines}\r\n".encode() + (b"" if request.method == "HEAD" else body)


@dataclass
class ObjectsBox:
    """A running edge."""

    pep: Pep
    etc: Path
    config: dict[str, Any]
    http: int

    def get(self, path: str, fields: Mapping[str, str] | None = None, host: str = WWW, **request: Any) -> Message:
        """Sends one request on a connection of its own. `request` has `method` and `body`."""
        return ask(self.http, path, fields, host, **request)

    def child(self) -> dict[str, Any]:
        """Returns the report of `longhaul run` on the program: `pid` and `restarts`."""
        return json.loads((self.pep.state / "run.json").read_text())["objects"]

    def status(self, *options: str) -> str:
        """Returns the output of `longhaul status`."""
        return command("status", "--state", self.pep.state, *options).stdout

    def kill_program(self) -> None:
        """Kills the program, and waits until another process has its job."""
        pid = self.child()["pid"]
        assert pid
        os.kill(pid, signal.SIGKILL)
        wait_for("another process", lambda: self.child()["pid"] not in (pid, None))

    def sent_to_program(self) -> float:
        """Returns the number of requests that Envoy has sent to the program and its spare so far."""
        return self.pep.metrics()['envoy_cluster_upstream_rq_total{envoy_cluster_name="objects"}']

    def under_way(self) -> float:
        """Returns the number of requests that the program has not responded to."""
        return self.pep.metrics()['envoy_cluster_upstream_rq_active{envoy_cluster_name="objects"}']

    def files_of(self, path: str) -> list[Path]:
        """Returns the program's files whose head names this path."""
        store = Path(self.config["cache"]["dir"]) / "objects"
        return [one for one in store.rglob("*") if one.is_file() and path.encode() in one.read_bytes()]

    def origins_socket(self) -> str:
        """Returns Envoy's socket where the program requests what it lacks."""
        return json.loads((self.pep.state / "rendered" / "objects.json").read_text())["origin"]

    def write(self, **sections: Any) -> None:
        """Changes sections of the running file. Returns once the change is applied."""
        before = self._outcomes()
        self.config |= sections
        write_config(self.etc, self.config, STEERED_NAMES)
        wait_for("the change to be taken", lambda: self._outcomes() > before, timeout_s=90)
        assert "and was refused" not in self.pep.output()

    def _outcomes(self) -> int:
        return len(
            re.findall(r"^\S+ \w+ longhaul: .* changed(?:: |, and was refused)", self.pep.output(), re.MULTILINE)
        )


def ask(
    port: int,
    path: str,
    fields: Mapping[str, str] | None = None,
    host: str = WWW,
    *,
    method: str = "GET",
    body: bytes = b"",
) -> Message:
    """Sends one request to a port of loopback. Returns the response, which may be cut short."""
    client = Client(port)
    try:
        encoded = [(name.encode(), value.encode()) for name, value in (fields or {}).items()]
        return client.ask(method.encode(), host.encode(), path.encode(), encoded, body)
    finally:
        client.close()


@dataclass
class Load:
    """Clients that request objects without end. Every second client keeps its connection."""

    port: int
    bodies: Mapping[str, bytes]
    done: int = 0
    failed: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def running(self, clients: int = 6) -> Iterator[Load]:
        """Runs the clients for as long as the context lasts."""
        threads = [threading.Thread(target=self._run, args=(number % 2 == 0, number)) for number in range(clients)]
        for thread in threads:
            thread.start()
        try:
            self.go_on(5 * clients)
            yield self
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def go_on(self, count: int) -> None:
        """Waits for so many more responses."""
        target = self.done + count
        wait_for(f"{count} more responses", lambda: self.done >= target or self.failed, timeout_s=60)

    def _run(self, keeps: bool, number: int) -> None:
        paths = list(self.bodies)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        while not self._over.wait(PAUSE_S):
            number += 1
            path = paths[number % len(paths)]
            problem = self._one(connection, path)
            if problem or not keeps:
                connection.close()
            with self._lock:
                self.done += 1
                self.failed += [problem] if problem else []
        connection.close()

    def _one(self, connection: http.client.HTTPConnection, path: str) -> str:
        try:
            connection.request("GET", path, headers={"Host": WWW})
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as problem:
            return f"{path}: {problem!r}"
        right = answer.status == 200 and body == self.bodies[path]
        return "" if right else f"{path}: {answer.status}, {len(body)} bytes, {body[:80]!r}"


def configuration(folder: Path, **sections: Any) -> dict[str, Any]:
    """Returns the edge's configuration. `sections` replace whole ones."""
    http, dns, metrics = free_ports(3)
    return {
        "role": "edge",
        "link": {"rtt": "600ms", "down": "20mbit", "up": "5mbit"},
        "proxy": {"addresses": ["127.0.0.1"]},
        "listen": {
            "http": f"127.0.0.1:{http}", "tls": "off", "dns": f"127.0.0.1:{dns}",
            "metrics": f"127.0.0.1:{metrics}", "status": "off", "intercept": "none",
        },
        "upstream": {"resolvers": ["127.0.0.1:53"]},
        "rewrite": {"level": "off"},
        "cache": {"dir": str(folder / "cache"), "size": "256mib"},
        **sections,
    }  # fmt: skip


def update(port: int, path: str, body: bytes, clients: int, **fields: str) -> list[float]:
    """Downloads an object as so many clients do in step, by ranges of 1 MiB, and compares all bytes. Returns the
    milliseconds to the first byte of each range."""
    step, size = threading.Barrier(clients), 1 << 20

    def client(_: int) -> list[float]:
        times = []
        for at in range(0, len(body), size):
            step.wait(60)
            times.append(first_byte_ms(port, path, at, body[at : at + size], **fields))
        return times

    with ThreadPoolExecutor(clients) as pool:
        return [time_ms for times in pool.map(client, range(clients)) for time_ms in times]


def first_byte_ms(port: int, path: str, at: int, expected: bytes, **fields: str) -> float:
    """Requests a range, and returns the time to its first byte. Compares all bytes with the expected ones."""
    begun = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    asked = f"{at}-{at + len(expected) - 1}"
    headers = {name.replace("_", "-"): value for name, value in fields.items()}
    connection.request("GET", path, headers={"Host": WWW, "Range": f"bytes={asked}", **headers})
    response = connection.getresponse()
    first = response.read(1)
    taken = time.monotonic() - begun
    assert (response.status, str(response.headers["content-range"]).rpartition("/")[0]) == (206, f"bytes {asked}")
    assert first + response.read() == expected
    connection.close()
    return taken * 1000


@contextmanager
def objects_box(folder: Path, config: dict[str, Any]) -> Iterator[ObjectsBox]:
    """Runs the edge."""
    for name in ("longhaul", "longhaul-objects", "coredns", "url_rewrite.wasm", "envoy"):
        built(name)
    etc = folder / "etc"
    etc.mkdir()
    with Pep(write_config(etc, config, STEERED_NAMES), folder) as pep:
        yield ObjectsBox(pep, etc, config, int(config["listen"]["http"].rpartition(":")[2]))


@dataclass
class ObjectsPair:
    """A remote, and a ground whose cache is the program."""

    http: int
    """The port of the remote for its clients."""
    ground: ObjectsBox
    remote: ObjectsBox
    link: Relay | None = None
    """The way from the remote to the ground, if it has a rate."""

    def fetched(self) -> float:
        """Returns the number of requests that the cache of the remote has sent to the ground so far."""
        return self.remote.pep.metrics()['envoy_http_downstream_rq_total{envoy_http_conn_manager_prefix="inner"}']


@contextmanager
def objects_pair(
    folder: Path, origins: Mapping[str, str], *, cached: bool = False, bits_per_s: int = 0
) -> Iterator[ObjectsPair]:
    """Runs both ends on loopback. With `cached`, the remote has a cache, too. With `bits_per_s`, a link of this rate is
    between them."""
    http, pipe, dns, near, far, between = free_ports(6)
    link = {"rtt": "20ms", "down": "50mbit", "up": "20mbit"}
    authority = Authority(folder)
    ca = str(authority.files.cert)
    homes = {role: folder / role for role in ("ground", "remote")}
    for home in homes.values():
        home.mkdir()
    ground = {
        "role": "ground",
        "link": link,
        "listen": {"status": "off", "metrics": f"127.0.0.1:{far}"},
        "upstream": {"map": dict(origins), "resolvers": ["127.0.0.1:53"]},
        "cache": {"dir": str(folder / "cache"), "size": "64mib"},
        "split": {"listen": f"{GROUND}:{pipe}", "peer": [SHIP], **authority.issue(GROUND).as_dict(), "ca": ca},
    }
    remote = {
        "role": "remote",
        "link": link,
        "proxy": {"addresses": ["127.0.0.1"]},
        "listen": {
            "http": f"127.0.0.1:{http}", "tls": "off", "dns": f"127.0.0.1:{dns}",
            "metrics": f"127.0.0.1:{near}", "status": "off", "intercept": "none",
        },
        "split": {"peer": f"{GROUND}:{between if bits_per_s else pipe}", **authority.issue(SHIP).as_dict(), "ca": ca},
    }  # fmt: skip
    if cached:
        remote |= {"cache": {"dir": str(folder / "cache"), "size": "64mib"}, "page": {"delta": "on"}}
        ground["page"] = {"delta": "on"}
    relay = Relay((GROUND, between), (GROUND, pipe), bits_per_s) if bits_per_s else None
    with (
        Pep(write_config(homes["ground"], ground), homes["ground"]) as far_end,
        relay or nullcontext(),
        Pep(write_config(homes["remote"], remote), homes["remote"]) as near_end,
    ):
        ends = (ObjectsBox(far_end, homes["ground"], ground, 0), ObjectsBox(near_end, homes["remote"], remote, http))
        yield ObjectsPair(http, *ends, relay)
