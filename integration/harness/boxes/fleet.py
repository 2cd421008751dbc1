"""Boxes around one router, each in a namespace of its own. The recipes of deploy/fleet run there with their addresses.

clients 192.0.2.2 ─┐               ┌─ a box, with the addresses of the recipe
                   router 192.0.2.1 ─ ...
                                   └─ internet 203.0.113.0/24, every site and its DNS
"""

from __future__ import annotations

import ctypes
import http.client
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.net.namespaces import Namespace, veth
from harness.origins.program import Origins, Site

from .pep import Pep

CLIENT = "192.0.2.2"
ROUTER = "192.0.2.1"
RESOLVER = "203.0.113.53"
WWW = "www.example.org"
CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def enter(namespace: Namespace) -> None:
    """Moves the calling thread into a namespace, for good."""
    with Path(f"/run/netns/{namespace.name}").open("rb") as file:
        if _libc.setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace.name}")


@dataclass
class Fleet:
    """The router, the clients and the web. Boxes join them."""

    folder: Path
    router: Namespace
    clients: Namespace
    origins: Origins
    _stack: ExitStack

    def box(self, name: str, address: str, *shared: str) -> Namespace:
        """Adds a namespace with an address that the router has a route to, and addresses on loopback that it has
        none to."""
        inside = self._stack.enter_context(Namespace(name))
        join(inside, name, self.router, address)
        for one in shared:
            inside.ip("address", "add", f"{one}/32", "dev", "lo")
        return inside

    def run(self, inside: Namespace, config: Path) -> Pep:
        """Starts Longhaul on a box, until the fleet ends."""
        home = config.parent / f"run-{inside.name}"
        home.mkdir()
        return self._stack.enter_context(Pep(config, home, inside))

    def load(self, address: str, mark: str, threads: int = 4) -> Load:
        """Starts clients, which send GETs to a box."""
        load = Load(self.clients, address, mark)
        load.start(threads)
        self._stack.callback(load.stop)
        return load


def join(inside: Namespace, name: str, router: Namespace, address: str) -> None:
    """Joins a namespace to the router."""
    device = f"to-{name}"[:15]
    veth(inside, "lan0", router, device)
    inside.ip("address", "add", f"{address}/32", "dev", "lan0")
    router.ip("route", "add", f"{address}/32", "dev", device)
    inside.ip("route", "add", "default", "via", ROUTER, "dev", "lan0", "onlink")


@contextmanager
def fleet(folder: Path) -> Iterator[Fleet]:
    """A router with clients and a site, and no box yet."""
    with ExitStack() as stack:
        router, clients, web = (stack.enter_context(Namespace(name)) for name in ("router", "clients", "web"))
        router.ip("address", "add", f"{ROUTER}/32", "dev", "lo")
        router.sysctl("net.ipv4.ip_forward", 1)
        join(clients, "clients", router, CLIENT)
        join(web, "web", router, RESOLVER)
        router.ip("route", "add", "203.0.113.0/24", "dev", "to-web", "via", RESOLVER, "onlink")
        web.ip("route", "add", "local", "203.0.113.0/24", "dev", "lo")
        host: dict[str, Any] = {"address": "203.0.113.10", "special": True, "generate": True}
        site = Site(dns=[f"{RESOLVER}:53"], hosts={WWW: host})
        origins = stack.enter_context(Origins(site.write(folder / "site.json"), folder, web))
        yield Fleet(folder, router, clients, origins, stack)


@dataclass
class Load:
    """GETs that threads among the clients send one after the other, each on a connection of its own."""

    clients: Namespace
    address: str
    mark: str
    failures: list[str] = field(default_factory=list)
    done: int = 0
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, threads: int) -> None:
        """Starts the threads."""
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends the threads after their present GET."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def until(self, count: int, timeout_s: float = 60.0) -> None:
        """Waits for so many more GETs."""
        target, deadline = self.done + count, time.monotonic() + timeout_s
        while self.done < target:
            assert time.monotonic() < deadline, f"{self.done} GETs, {self.failures[:3]}"
            time.sleep(0.02)

    def _run(self, thread: int) -> None:
        enter(self.clients)
        number = 0
        while not self._over.is_set():
            number += 1
            problem = get(self.address, f"/{self.mark}-{thread}-{number}.bin")
            with self._lock:
                self.done += 1
                if problem:
                    self.failures.append(f"{self.mark}-{thread}-{number}: {problem}")
            time.sleep(0.01)


def get(address: str, path: str, port: int = 80) -> str:
    """Sends one GET for a path of the site. Returns its problem, or nothing."""
    client = http.client.HTTPConnection(address, port, timeout=30)
    try:
        client.request("GET", path, headers={"Host": WWW})
        answer = client.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        return repr(error)
    finally:
        client.close()
    return "" if answer.status == 200 else f"{answer.status} {body[:200]!r}"


def kill(pep: Pep) -> None:
    """Kills `longhaul run` and its children at once, as a power cut does."""
    own = pep.child.process.pid
    children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
    for pid in [own, *map(int, children)]:
        os.kill(pid, 9)
    pep.child.process.wait()
