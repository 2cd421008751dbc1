"""Clients with constant load: pages, cached objects, moved URLs and names, over connections that stay open for a
while."""

from __future__ import annotations

import http.client
import random
import threading
from dataclasses import dataclass, field

from dnslib import DNSRecord

OBJECTS = 200
"""Different objects: few enough that the cache is full early and stays full."""


@dataclass
class Target:
    """The sockets of the proxy, and the sites behind it."""

    http: int
    dns: int
    page_host: str
    object_host: str
    pages: int
    """Different pages."""


@dataclass
class Count:
    """The counters of one client."""

    answers: int = 0
    names: int = 0
    failures: list[str] = field(default_factory=list)


class Client(threading.Thread):
    """One client, which runs until `stop` is set. Its seed makes a run repeatable."""

    def __init__(self, seed: int, target: Target, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.count = Count()
        self._random = random.Random(seed)
        self._target = target
        self._stop_asked = stop

    def run(self) -> None:
        """Sends requests until the client is stopped. It records a failure and continues."""
        while not self._stop_asked.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", self._target.http, timeout=20)
            try:
                for _ in range(self._random.randint(1, 40)):
                    self._ask(connection)
                self._look_up()
            except (OSError, http.client.HTTPException) as problem:
                self.count.failures.append(repr(problem))
            finally:
                connection.close()

    def _ask(self, connection: http.client.HTTPConnection) -> None:
        path, host, expected = self._request()
        connection.request("GET", path, headers={"Host": host, "Accept-Encoding": "br, gzip"})
        answer = connection.getresponse()
        answer.read()
        self.count.answers += 1
        if answer.status != expected:
            self.count.failures.append(f"{answer.status} for {host}{path}")

    def _request(self) -> tuple[str, str, int]:
        target, number = self._target, self._random.randrange(OBJECTS)
        kind = self._random.randrange(10)
        if kind < 5:
            hosts = f"host={target.object_host}"
            size = 2000 + self._random.randrange(target.pages) * 38_000 // target.pages
            return f"/_/answer?{hosts}&size={size}", target.page_host, 200
        if kind < 7:
            return f"/object-{number}.png?size=4000", target.object_host, 200
        if kind < 9:
            return f"/{target.object_host}/object-{number}.png?size=4000", f"127.0.0.1:{target.http}", 200
        return "/_/answer?status=404", target.page_host, 404

    def _look_up(self) -> None:
        name = f"n{self._random.randrange(500)}.{self._target.page_host}"
        DNSRecord.question(name).send("127.0.0.1", self._target.dns, timeout=10)
        self.count.names += 1
