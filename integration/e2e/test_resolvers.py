"""Resolvers that support UDP only, lose a query or fail once: each costs a retry and no page."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from harness.clients import Curl
from harness.desk import Desk
from harness.pep import Pep
from harness.waiting import wait_for

ADDRESS = "127.78.0.1"
"""The address of every name of this resolver: the desk's site."""
SERVFAIL = 2


class Resolver:
    """Responds to A queries over UDP. No TCP port is open. The first label of a name selects the failure."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.1)
        self.asked: Counter[bytes] = Counter()
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    @property
    def at(self) -> str:
        """Returns its socket as a configuration writes it."""
        return f"127.0.0.1:{self.socket.getsockname()[1]}"

    def serve(self) -> None:
        """Serves until it is stopped."""
        while not self.stopped.is_set():
            try:
                query, client = self.socket.recvfrom(4096)
            except TimeoutError:
                continue
            reply = self.reply(query)
            if reply:
                self.socket.sendto(reply, client)

    def reply(self, query: bytes) -> bytes | None:
        """Returns the reply to a query, or None."""
        end = query.index(0, 12) + 1
        question = query[12 : end + 4]
        kind = int.from_bytes(query[end : end + 2], "big")
        self.asked[question.lower()] += 1
        first = self.asked[question.lower()] == 1
        label = question[1 : 1 + question[0]].lower()
        if label.startswith(b"lost") and first:
            return None
        if label.startswith(b"dead"):
            return None
        code = SERVFAIL if label.startswith(b"fails") and first else 0
        answers = code == 0 and kind == 1
        record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(ADDRESS) if answers else b""
        head = query[:2] + bytes([0x81, 0x80 | code, 0, 1, 0, int(answers), 0, 0, 0, 0])
        return head + question + record

    def stop(self) -> None:
        """Stops the thread and closes the socket."""
        self.stopped.set()
        self.thread.join()
        self.socket.close()


@pytest.fixture(name="resolver")
def a_resolver() -> Iterator[Resolver]:
    """A resolver that runs during its test."""
    resolver = Resolver()
    yield resolver
    resolver.stop()


@pytest.fixture(name="pep")
def a_box(desk: Desk, resolver: Resolver) -> Iterator[Pep]:
    """A box that uses this resolver."""
    port = int(desk.config["upstream"]["map"]["www.example.org"].rpartition(":")[2])
    upstream = {**desk.config["upstream"], "resolvers": [resolver.at], "ports": [80, port], "map": {}}
    with Pep(desk.write(upstream=upstream), desk.folder) as pep:
        yield pep


def digs(desk: Desk, name: str, *options: str) -> str:
    """Returns dig's output for a client's query."""
    line = ["dig", "@127.0.0.1", "-p", str(desk.dns), name, "A", "+tries=1", "+time=6", *options]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=20).stdout


@pytest.mark.usefixtures("pep")
def test_a_resolver_that_refuses_tcp_answers_a_client_that_asked_over_tcp(desk: Desk) -> None:
    answer = digs(desk, "plain.example.net", "+tcp")
    assert "status: NOERROR" in answer, answer
    assert ADDRESS in answer


@pytest.mark.usefixtures("pep")
@pytest.mark.parametrize("name", ["plain.example.net", "fails.example.net", "lost.example.net"])
def test_a_resolver_that_fails_or_is_silent_once_costs_a_retry_and_no_page(desk: Desk, name: str) -> None:
    port = desk.config["upstream"]["map"]["www.example.org"].rpartition(":")[2]
    begun = time.monotonic()
    answer = Curl(desk.folder).get(f"http://127.0.0.1:{desk.http}/", "-H", f"Host: {name}:{port}")
    assert answer.status not in (0, 502, 503, 504), answer
    assert time.monotonic() - begun < 8


@pytest.mark.usefixtures("pep")
def test_a_failure_is_not_remembered_against_the_next_client(desk: Desk) -> None:
    assert "status: SERVFAIL" in digs(desk, "fails-here.example.net")
    assert "status: NOERROR" in digs(desk, "fails-here.example.net")


def test_the_log_names_the_query_and_the_reason(desk: Desk, pep: Pep) -> None:
    digs(desk, "dead.example.net")
    failed = "WARNING coredns: the query for dead.example.net (A) failed"
    wait_for("the query in the log", lambda: failed in pep.output(), 10, 0.2)
    line = next(line for line in pep.output().splitlines() if failed in line)
    assert "did not respond in time" in line, line
    assert "SHA512" not in pep.output()
