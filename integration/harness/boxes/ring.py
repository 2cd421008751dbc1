"""A ring of caches on loopback: `cache.parent` of a desk as a list of nodes, one of which may die.

The nodes are `origins` programs. They take the requests of a proxy, and their logs show who served which URL.
"""

from __future__ import annotations

import http.client
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.host.ports import free_ports
from harness.host.waiting import wait_for
from harness.origins.program import Origins, Site

from .desk import IMG, Desk

CLIENTS = 6
"""A browser opens six connections to a name."""


@dataclass
class Node:
    """One node of the ring. It can die and come back at its address."""

    port: int
    folder: Path
    origins: Origins | None = None

    @property
    def address(self) -> str:
        """Its entry in `cache.parent`."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it. Its log is empty then."""
        self.folder.mkdir(exist_ok=True)
        site = Site(http_port=self.port, hosts={IMG: {"address": "127.0.0.1", "special": True, "generate": True}})
        self.origins = Origins(site.write(self.folder / "site.json"), self.folder)
        self.origins.__enter__()

    def kill(self) -> None:
        """Ends it as a machine that loses its power."""
        self.signal(signal.SIGKILL)
        self.stop()

    def signal(self, number: int) -> None:
        """Sends a signal to its process."""
        assert self.origins
        os.kill(self.origins.child.process.pid, number)

    def stop(self) -> None:
        """Ends it, if it runs."""
        if self.origins:
            self.origins.__exit__(None, None, None)
            self.origins = None

    def served(self) -> list[str]:
        """Returns the targets of the requests of clients so far. Health checks are no such requests."""
        return [one["target"] for one in self.origins.requests(method="GET")] if self.origins else []


@dataclass
class Ring:
    """The running nodes, in front of which a Longhaul stands."""

    desk: Desk
    nodes: list[Node]

    @property
    def changes(self) -> dict[str, Any]:
        """The changes to the configuration of the desk. A mapped name bypasses every parent."""
        upstream = {**self.desk.config["upstream"], "map": {}}
        return {"cache": {"parent": [node.address for node in self.nodes]}, "upstream": upstream}

    def get(self, targets: Iterable[str]) -> Counter[int]:
        """Sends a GET for each target on a few connections. Returns the statuses; 0 is a broken response."""
        queue = list(reversed(list(targets)))
        statuses: Counter[int] = Counter()

        def client() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", self.desk.http, timeout=30)
            while True:
                try:
                    target = queue.pop()
                except IndexError:
                    connection.close()
                    return
                statuses[one(connection, target)] += 1

        with ThreadPoolExecutor(CLIENTS) as pool:
            for done in [pool.submit(client) for _ in range(CLIENTS)]:
                done.result()
        return statuses

    def homes(self, targets: list[str]) -> dict[str, str]:
        """Requests each target once, one after the other. Returns the node of each."""
        for node in self.nodes:
            if node.origins:
                node.origins.forget()
        connection = http.client.HTTPConnection("127.0.0.1", self.desk.http, timeout=30)
        for target in targets:
            status = one(connection, target)
            assert status == 200, f"{target}: {status}"
        connection.close()
        return {target[target.index("/", 7) :]: node.address for node in self.nodes for target in node.served()}

    @contextmanager
    def load(self) -> Iterator[Counter[int]]:
        """Sends GETs for new URLs as long as the context lasts. Fills the counter with the statuses."""
        total: Counter[int] = Counter()
        end = threading.Event()

        def run() -> None:
            number = 0
            while not end.is_set():
                total.update(self.get(urls(100, f"load{number}")))
                number += 1

        thread = threading.Thread(target=run)
        thread.start()
        try:
            wait_for("a first round of the load", lambda: total[200] >= 100)
            yield total
        finally:
            end.set()
            thread.join()


def one(connection: http.client.HTTPConnection, target: str) -> int:
    """Returns the status of one request, or 0 if the response is not whole."""
    try:
        connection.request("GET", target, headers={"Host": IMG})
        response = connection.getresponse()
        response.read()
    except (http.client.HTTPException, OSError):
        connection.close()
        return 0
    return response.status


def urls(count: int, of: str = "one") -> list[str]:
    """Returns targets of different URLs."""
    return [f"/{of}/{number}.png?size=300" for number in range(count)]


@contextmanager
def ring_of(desk: Desk, count: int) -> Iterator[Ring]:
    """Starts the nodes."""
    ports = free_ports(count)
    with ExitStack() as stack:
        nodes = [Node(port, desk.folder / f"node{number}") for number, port in enumerate(ports)]
        for node in nodes:
            node.start()
            stack.callback(node.stop)
        yield Ring(desk, nodes)


@dataclass(frozen=True)
class Outcome:
    """The outcome for a ring of which one node died."""

    same_share: float
    """The share of URLs that had the same node the second time."""
    shares: list[float]
    """The share of each node."""
    failed: int
    """Requests that failed from before the death until after its discovery."""
    requests: int
    moved_share: float
    """The share of URLs that had another node after the death. Those of the dead node had to."""
    returned_share: float
    """The share of URLs that had their first node again when the dead node was back."""


def lose_a_node(ring: Ring, count: int, down: Any, up: Any) -> Outcome:
    """Lets one node of a ring die under load, and come back. `down` and `up` return true once `longhaul status` says
    that it is so."""
    targets = urls(count)
    first, second = ring.homes(targets), ring.homes(targets)
    victim = ring.nodes[0]
    with ring.load() as statuses:
        victim.kill()
        wait_for("status shows the dead node", down, 10, 0.1)
    after = ring.homes(targets)
    victim.start()
    wait_for("status shows that it is back", up, 10, 0.1)
    # Envoy may tell its workers a second after `status` shows it: it merges updates of health (`update_merge_window`).
    probe = next(target for target in targets if first[target] == victim.address)
    wait_for("requests reach it again", lambda: ring.homes([probe]) == {probe: victim.address}, 10, 0.1)
    back = ring.homes(targets)
    held = Counter(first.values())
    return Outcome(
        same_share=share(first[url] == second[url] for url in targets),
        shares=[held[node.address] / count for node in ring.nodes],
        failed=sum(number for status, number in statuses.items() if status != 200),
        requests=statuses.total(),
        moved_share=share(first[url] != after[url] for url in targets),
        returned_share=share(first[url] == back[url] for url in targets),
    )


def share(of: Iterable[bool]) -> float:
    """Returns the share of true ones."""
    found = list(of)
    return sum(found) / len(found)
