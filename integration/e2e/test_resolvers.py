"""Resolvers that support UDP only, lose a query or fail once: each costs a retry and no page."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from harness.boxes.desk import Desk
from harness.boxes.pep import Pep
from harness.clients.commands import Curl
from harness.host.waiting import wait_for
from harness.origins.name_server import NameServer, Response

ADDRESS = "127.78.0.1"
"""The address of every name of this resolver: the desk's site."""


@pytest.fixture(name="resolver")
def a_resolver() -> Iterator[NameServer]:
    """A resolver that supports UDP only. The first label of a name selects its failure."""
    asked: Counter[tuple[str, str]] = Counter()

    def respond(name: str, kind: str) -> Response:
        asked[name, kind] += 1
        first = asked[name, kind] == 1
        if name.startswith("dead") or (name.startswith("lost") and first):
            return None
        return "SERVFAIL" if name.startswith("fails") and first else [ADDRESS]

    with NameServer(respond, ttl=60) as resolver:
        yield resolver


@pytest.fixture(name="pep")
def a_box(desk: Desk, resolver: NameServer) -> Iterator[Pep]:
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
