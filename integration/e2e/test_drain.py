"""SIGTERM drains a box: what is under way ends, and nothing else delays the end."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.boxes.desk import WWW, Desk, desk_in, is_taken
from harness.boxes.pep import Pep, command
from harness.clients.commands import Answer, Curl
from harness.host.waiting import wait_for

PIECES = 20
RTT_S = 0.6
"""The round trip in the file of the desk."""
LONG_S = 20.0
"""Less than the default of `drain.time`, and more than any end without a request under way."""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_in(tmp_path_factory.mktemp("drain")) as desk:
        yield desk


@dataclass
class Download:
    """A response of 20 pieces, and its end."""

    answer: Answer | None = None


@contextmanager
def download(desk: Desk, pep: Pep, pause_ms: int) -> Iterator[Download]:
    """A download that has begun."""
    found = Download()
    target = f"/_/answer?body=noise&size={PIECES}000&chunk=1000&pause={pause_ms}&header=cache-control:no-store"
    url = f"http://127.0.0.1:{desk.http}{target}"

    def fetch() -> None:
        found.answer = Curl(desk.folder).get(url, "-H", f"Host: {WWW}")

    thread = threading.Thread(target=fetch)
    thread.start()
    active = "/stats?filter=^http.edge_http.downstream_rq_active"
    wait_for("the request", lambda: pep.admin(active).split()[-1:] == ["1"])
    try:
        yield found
    finally:
        thread.join(LONG_S)


def end(pep: Pep, number: int = signal.SIGTERM) -> float:
    """Sends a signal and returns the time until the end."""
    began = time.monotonic()
    pep.child.process.send_signal(number)
    pep.child.process.wait(LONG_S)
    return time.monotonic() - began


def test_a_response_under_way_ends_whole_while_new_connections_are_refused(desk: Desk, tmp_path: Path) -> None:
    with Pep(desk.write(), tmp_path) as pep, download(desk, pep, 150) as found:
        pep.child.process.send_signal(signal.SIGTERM)
        wait_for("a closed listener", lambda: not is_taken(desk.http), timeout_s=5)
        status = command("status", "--state", pep.state)
        assert (status.returncode, "drains" in status.stdout) == (1, True), status
        assert pep.child.process.wait(LONG_S) == 0, pep.output()
    assert found.answer
    assert (found.answer.status, len(found.answer.body)) == (200, PIECES * 1000)


@pytest.mark.parametrize("first", [b"", b"GET /_/answer?body=noise&size=9 HTTP/1.1\r\n"], ids=["silent", "begun"])
def test_a_request_on_its_way_to_an_open_connection_is_served(desk: Desk, tmp_path: Path, first: bytes) -> None:
    text = b"GET /_/answer?body=noise&size=9 HTTP/1.1\r\nHost: " + WWW.encode() + b"\r\n\r\n"
    with Pep(desk.write(), tmp_path) as pep, socket.create_connection(("127.0.0.1", desk.http), 5) as client:
        client.sendall(first)
        pre = "/stats?filter=downstream_(pre_)?cx_active&usedonly"
        wait_for("the connection", lambda: any(line.endswith(": 1") for line in pep.admin(pre).splitlines()))
        pep.child.process.send_signal(signal.SIGTERM)
        wait_for("a closed listener", lambda: not is_taken(desk.http), timeout_s=5)
        time.sleep(RTT_S)
        client.sendall(text.removeprefix(first))
        assert client.recv(100).startswith(b"HTTP/1.1 200 "), pep.output()
        assert pep.child.process.wait(LONG_S) == 0, pep.output()


def test_a_second_signal_ends_a_busy_box_at_once(desk: Desk, tmp_path: Path) -> None:
    with Pep(desk.write(), tmp_path) as pep, download(desk, pep, 1000) as found:
        pep.child.process.send_signal(signal.SIGTERM)
        pep.child.wait_for_output("draining")
        assert pep.child.process.poll() is None
        assert end(pep) < 5.0
        assert pep.child.process.returncode == 130, pep.output()
    assert found.answer
    assert found.answer.problem, "it broke off"


@pytest.mark.long
def test_the_end_of_drain_time_ends_a_busy_box_and_ctrl_c_does_not_wait(desk: Desk, tmp_path: Path) -> None:
    with Pep(desk.write(drain={"time": "1s"}), tmp_path) as pep, download(desk, pep, 1000):
        assert 1.0 <= end(pep) < 6.0
        assert "`drain.time` is over: 1 requests and 0 other connections break off" in pep.output()
    with Pep(desk.write(), tmp_path) as pep, download(desk, pep, 1000):
        assert end(pep, signal.SIGINT) < 5.0
