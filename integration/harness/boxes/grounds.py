"""A remote with several grounds on loopback. Needs no root and no namespaces: the link has no delay here."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.host.artifacts import built
from harness.host.ports import free_ports
from harness.host.processes import is_running
from harness.host.waiting import wait_for
from harness.net.authority import Authority, KeyFiles
from harness.origins.name_server import NameServer
from harness.origins.program import Origins, Site

from .pair import known_to_older, tls_of_remote
from .pep import Pep, write_config

WWW = "www.example.org"
TLS_WWW = "tls.example.org"
NAME = "ground.test"
"""The name that has the addresses of all grounds."""
SHIP = "ship.test"
REMOTES = "remotes.txt"
"""The file of the remotes that a ground accepts, beside its configuration."""
LINK = {"rtt": "20ms", "down": "50mbit", "up": "20mbit"}


_numbers = itertools.count()
"""Each GET has a URL of its own, so no cache responds."""


@dataclass
class Load:
    """GETs that threads send one after the other until `stop`, and their outcomes."""

    port: int
    mark: str
    failures: list[str] = field(default_factory=list)
    cut: int = 0
    """Responses that had begun and broke off. They are no failures: nobody can repeat such a request."""
    slowest_s: float = 0.0
    done: int = 0
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, threads: int) -> Load:
        """Starts the threads."""
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> None:
        """Ends the threads after their present GET."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def until(self, count: int) -> None:
        """Waits for so many more GETs."""
        target = self.done + count
        deadline = time.monotonic() + 60
        while self.done < target:
            assert time.monotonic() < deadline, f"{self.done} GETs, {self.failures[:3]}"
            time.sleep(0.02)

    def _run(self) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            problem, cut = "", 0
            try:
                problem = get(self.port, f"/{self.mark}-{next(_numbers)}.bin")
            except http.client.IncompleteRead:
                cut = 1
            took = time.monotonic() - began
            with self._lock:
                self.done += 1
                self.cut += cut
                self.slowest_s = max(self.slowest_s, took)
                if problem:
                    self.failures.append(f"{took:.2f} s: {problem}")
            time.sleep(0.01)


def get(port: int, path: str) -> str:
    """Sends one GET through the remote. Returns its problem, or nothing."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        client.request("GET", path, headers={"Host": WWW})
        answer = client.getresponse()
        body = answer.read()
    except OSError as error:
        return repr(error)
    finally:
        client.close()
    return "" if answer.status == 200 else f"{answer.status} {body[:200]!r}"


def accepts(address: str, port: int, shown: KeyFiles) -> bool:
    """Returns true if a ground accepts a remote with this certificate."""
    context = tls_of_remote(shown, "h2")
    try:
        with socket.create_connection((address, port), timeout=10) as plain, context.wrap_socket(plain) as pipe:
            pipe.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
            return len(pipe.recv(9)) > 0
    except (ssl.SSLError, ConnectionResetError):
        return False


@dataclass
class GroundBox:
    """One ground: its address, its configuration, and the run."""

    address: str
    port: int
    config: Path
    pep: Pep

    def passed_tls(self) -> int:
        """Returns the number of connections that have passed this ground unread."""
        return sum(TLS_WWW in json.dumps(one) for one in self.pep.requests())

    def served(self, mark: str) -> int:
        """Returns the number of requests of this mark that the ground has served so far."""
        return sum(one.get("path", "").startswith(f"/{mark}-") for one in self.pep.requests())

    def connections(self) -> float:
        """Returns the number of pipes that are open here."""
        text = self.pep.admin("/stats?filter=http.edge_http.downstream_cx_active")
        return float(text.rpartition(": ")[2])

    def accepts(self, shown: KeyFiles) -> bool:
        """Returns true if the ground accepts a remote with this certificate."""
        return accepts(self.address, self.port, shown)

    def draining(self) -> str:
        """Returns Envoy's count of filter chains that drain."""
        return self.pep.admin("/stats?filter=total_filter_chains_draining")

    def pids(self) -> list[int]:
        """Returns the process of `longhaul run` and its children."""
        own = self.pep.child.process.pid
        children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return [own, *map(int, children)]

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Stops all processes of the ground for as long as the context lasts. No connection ends."""
        pids = self.pids()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in reversed(pids):
                os.kill(pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kills the ground and its children at once, as a power cut does."""
        pids = self.pids()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.pep.child.process.wait()
        while any(is_running(pid) for pid in pids):
            time.sleep(0.01)


@dataclass
class GroundsBed:
    """A remote, several grounds, and an origin behind them."""

    folder: Path
    remote: Pep
    http: int
    tls: int
    grounds: list[GroundBox]
    named: list[str]
    """The addresses that the name of all grounds has."""
    authority: Authority

    def load(self, mark: str, threads: int = 8) -> Load:
        """Starts clients."""
        return Load(self.http, mark).start(threads)

    def tls_problem(self, timeout_s: float = 5) -> str:
        """Sends one GET over TLS through the remote. Returns its problem, or nothing."""
        trusting = ssl.create_default_context(cafile=str(self.authority.files.cert))
        try:
            with (
                socket.create_connection(("127.0.0.1", self.tls), timeout=timeout_s) as plain,
                trusting.wrap_socket(plain, server_hostname=TLS_WWW) as client,
            ):
                client.sendall(f"GET /page.html HTTP/1.1\r\nHost: {TLS_WWW}\r\n\r\n".encode())
                head = client.recv(12)
        except OSError as error:
            return repr(error)
        return "" if head == b"HTTP/1.1 200" else repr(head)


def _no_cache(program: Path | None) -> dict[str, None]:
    """Returns the section `cache` of a remote of an earlier version, which refuses it."""
    return {"cache": None} if program else {}


def _own_listen(program: Path | None) -> dict[str, str]:
    """Returns what an earlier version needs beside others on loopback: a port for Envoy's admin interface."""
    return {"admin": f"127.0.0.1:{free_ports(1)[0]}"} if program else {}


def _ground_config(
    address: str,
    port: int,
    listen: dict[str, str],
    identity: KeyFiles,
    ca: Path,
    origins: dict[str, str],
    both: dict[str, Any],
) -> dict[str, Any]:
    return {
        "role": "ground",
        **both,
        "listen": {**listen, "status": "off"},
        "upstream": {"map": origins, "resolvers": ["127.0.0.1:53"]},
        "split": {"listen": f"{address}:{port}", "peer": REMOTES, **identity.as_dict(), "ca": str(ca)},
    }


@contextmanager
def grounds(
    folder: Path,
    count: int = 2,
    *,
    by_name: bool = False,
    accepted: Sequence[str] = (SHIP,),
    link: dict[str, str] | None = None,
    origin: str = "",
    hosts: Sequence[str] = (WWW,),
    page: dict[str, Any] | None = None,
    remote_program: Path | None = None,
    ground_program: Path | None = None,
    second_program: Path | None = None,
    **split: Any,
) -> Iterator[GroundsBed]:
    """Runs a remote and `count` grounds. The remote lists their addresses, or only a name that has all of them. The
    grounds accept the names `accepted`, which are in a file. `link` and `page` are the sections of
    that name at both ends. `origin` is the address and the port of another origin, and `hosts` are its names. The
    programs are the `longhaul` of another version, `second_program` of the second ground alone. `split` changes keys of
    the remote."""
    for name in ("longhaul", "coredns", "envoy", "origins"):
        built(name)
    both: dict[str, Any] = {"link": link or LINK, **({"page": page} if page else {})}
    http, tls, pipe, dns, metrics, origin_http, origin_https, origin_dns, resolver = free_ports(9)
    addresses = [f"127.0.0.{number + 2}" for number in range(count)]
    authority = Authority(folder)
    ca = authority.files.cert
    site = Site(
        dns=[f"127.0.0.1:{origin_dns}"],
        http_port=origin_http,
        https_port=origin_https,
        ca=authority.files.as_dict(),
        hosts={name: {"address": "127.78.0.1", "special": True, "generate": True} for name in (WWW, TLS_WWW)},
    )
    with ExitStack() as stack:
        stack.enter_context(Origins(site.write(folder / "site.json"), folder))
        named = list(addresses)
        stack.enter_context(NameServer(lambda *_: named, port=resolver))
        boxes = []
        for number, address in enumerate(addresses):
            program = (second_program if number == 1 else None) or ground_program
            home = folder / address
            home.mkdir()
            identity = authority.issue(f"{address}.{NAME}", address, NAME)
            (home / REMOTES).write_text("".join(f"{name}\n" for name in accepted))
            behind = origin or f"127.78.0.1:{origin_http}"
            origins = dict.fromkeys((WWW, *hosts), behind) | {TLS_WWW: f"127.78.0.1:{origin_https}"}
            ground = _ground_config(address, pipe, _own_listen(program), identity, ca, origins, both)
            if program:
                ground["link"] = known_to_older(ground["link"])
            config = write_config(home, ground)
            pep = stack.enter_context(Pep(config, home, program=program))
            boxes.append(GroundBox(address, pipe, config, pep))
        home = folder / "remote"
        home.mkdir()
        peer: Any = f"{NAME}:{pipe}" if by_name else [f"{address}:{pipe}" for address in addresses]
        config = write_config(
            home,
            {
                "role": "remote",
                **both,
                **_no_cache(remote_program),
                "proxy": {"addresses": ["127.0.0.1"]},
                "listen": {
                    "http": f"127.0.0.1:{http}", "tls": f"127.0.0.1:{tls}", "dns": f"127.0.0.1:{dns}",
                    "metrics": f"127.0.0.1:{metrics}", "status": "off", **_own_listen(remote_program),
                    "intercept": "none",
                },
                **({"upstream": {"resolvers": [f"127.0.0.1:{resolver}"]}} if by_name else {}),
                "split": {"peer": peer, **authority.issue(SHIP).as_dict(), "ca": str(ca), **split},
            },
        )  # fmt: skip
        remote = stack.enter_context(Pep(config, home, program=remote_program))
        if by_name:
            # Envoy asks again for a name only after a while.
            wait_for("the pipe", lambda: not get(http, "/first.bin"), timeout_s=60)
        # A remote is ready once its link is up or known to be down.
        assert not (problem := get(http, "/first.bin")), problem
        yield GroundsBed(folder, remote, http, tls, boxes, named, authority)
