"""A client that sends many DNS queries over UDP, as the stub resolver of a client's system does."""

from __future__ import annotations

import select
import socket
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from dnslib import QTYPE, RCODE, DNSRecord

from harness.net.namespaces import Namespace
from harness.net.sockets import socket_in
from harness.net.topology import RESOLVER

TIMEOUT_S, ATTEMPTS = 5.0, 2
"""The defaults of resolv.conf(5)."""
BUFFER_BYTES = 1 << 20
LARGEST_BYTES = 65535
POLL_S = 0.05


@dataclass(frozen=True)
class Pace:
    """The times of queries."""

    pause_s: float = 0.0
    """Between two names. At 0, all leave at once."""
    at_once: int = 1 << 15
    """The most queries without a response."""
    timeout_s: float = TIMEOUT_S
    attempts: int = ATTEMPTS


@dataclass(frozen=True)
class Question:
    """A name and a record type."""

    name: str
    kind: str = "A"


@dataclass
class Lookup:
    """A query with its response, if one came."""

    question: Question
    asked_s: float
    """The time of the first attempt by the monotonic clock."""
    seconds: float | None = None
    """The time from the first attempt to the response. None without one."""
    code: str = "no response"
    addresses: list[str] = field(default_factory=list)
    ttl: int = 0
    attempts: int = 1

    @property
    def failed(self) -> bool:
        """True without a response that says something about the name."""
        return self.code not in ("NOERROR", "NXDOMAIN")

    @property
    def answered_s(self) -> float | None:
        """The time of the response by the monotonic clock."""
        return None if self.seconds is None else self.asked_s + self.seconds


def never(_: Lookup) -> bool:
    """Lets a client send all queries."""
    return False


def questions(names: Sequence[str], *kinds: str) -> list[Question]:
    """Returns the queries for the A records of names, or for records of other types."""
    return [Question(name, kind) for name in names for kind in kinds or ("A",)]


def look_up(
    clients: Namespace,
    asked: Sequence[Question],
    pace: Pace | None = None,
    *,
    enough: Callable[[Lookup], bool] = never,
    server: str = RESOLVER,
    source: str = "",
) -> list[Lookup]:
    """Sends queries from a namespace, and returns those that were sent. `enough` ends it at a response. `source` is the
    address of one of several clients."""
    with socket_in(clients, socket.SOCK_DGRAM) as made:
        if source:
            made.bind((source, 0))
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        made.connect((server, 53))
        made.setblocking(False)
        return list(_Client(made, asked, pace or Pace(), enough).run())


def seconds_of(lookups: Sequence[Lookup]) -> list[float]:
    """Returns the times of those with a response."""
    return [one.seconds for one in lookups if one.seconds is not None]


def p95(values: Sequence[float]) -> float:
    """Returns the 95th percentile. It lies between two of the values."""
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


class _Client:
    """One run of queries. The identifier of a query is its number."""

    def __init__(
        self, made: socket.socket, asked: Sequence[Question], pace: Pace, enough: Callable[[Lookup], bool]
    ) -> None:
        self._socket, self._asked, self._pace, self._enough = made, asked, pace, enough
        self._open: dict[int, tuple[int, Lookup]] = {}
        """The open queries by their identifiers, each with its number."""
        self._again: deque[tuple[float, int]] = deque()
        """The end of each attempt, in the order of time, with the number of its query."""
        self._sent = 0
        self._began_s = time.monotonic()

    def run(self) -> Iterator[Lookup]:
        """Sends and receives until no query is open. Yields each in the end."""
        over = False
        while not over and (self._sent < len(self._asked) or self._open):
            self._send_new()
            yield from self._retry()
            for lookup in self._received():
                yield lookup
                over = over or self._enough(lookup)
        yield from (lookup for _, lookup in self._open.values())

    def _send_new(self) -> None:
        while self._sent < len(self._asked) and len(self._open) < self._pace.at_once:
            now_s = time.monotonic()
            if now_s < self._began_s + self._sent * self._pace.pause_s:
                return
            self._open[self._sent & 0xFFFF] = (self._sent, Lookup(self._asked[self._sent], now_s))
            self._send(self._sent)
            self._sent += 1

    def _send(self, number: int) -> None:
        question = self._asked[number]
        query = DNSRecord.question(question.name, question.kind)
        query.header.id = number & 0xFFFF
        self._socket.send(bytes(query.pack()))
        self._again.append((time.monotonic() + self._pace.timeout_s, number))

    def _retry(self) -> Iterator[Lookup]:
        """Repeats the queries whose attempt ended. Yields those without any attempt left."""
        while self._again and self._again[0][0] <= time.monotonic():
            _, number = self._again.popleft()
            found, lookup = self._open.get(number & 0xFFFF, (-1, None))
            if lookup is None or found != number:
                continue
            if lookup.attempts < self._pace.attempts:
                lookup.attempts += 1
                self._send(number)
            else:
                del self._open[number & 0xFFFF]
                yield lookup

    def _received(self) -> Iterator[Lookup]:
        """Waits for responses, but not beyond the next query to send. Yields their queries."""
        if not select.select([self._socket], [], [], self._wait_s())[0]:
            return
        for _ in range(self._pace.at_once):
            try:
                response = self._socket.recv(LARGEST_BYTES)
            except BlockingIOError:
                return
            now_s, message = time.monotonic(), DNSRecord.parse(response)
            _, lookup = self._open.get(message.header.id, (0, None))
            # After a retry there may be a second response, to a query that is not open any more.
            if lookup and str(message.q.qname).rstrip(".") == lookup.question.name:
                del self._open[message.header.id]
                lookup.seconds = now_s - lookup.asked_s
                _read(lookup, message)
                yield lookup

    def _wait_s(self) -> float:
        """Returns the longest time without anything to send."""
        waits = [POLL_S]
        if self._sent < len(self._asked) and len(self._open) < self._pace.at_once:
            waits.append(self._began_s + self._sent * self._pace.pause_s - time.monotonic())
        return max(0.0, min(waits))


def _read(lookup: Lookup, message: DNSRecord) -> None:
    lookup.code = RCODE[message.header.rcode]
    records = [one for one in message.rr if QTYPE[one.rtype] == lookup.question.kind]
    lookup.addresses = [str(one.rdata) for one in records]
    lookup.ttl = min((one.ttl for one in records), default=0)
