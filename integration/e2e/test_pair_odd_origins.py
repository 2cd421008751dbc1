"""Origins that violate HTTP. One odd response must not end a pair's pipe, which carries the streams of all clients."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from e2e.bed import made_to_order
from e2e.pair_bed import LAB, PairBed, standing_pair
from harness.clients.commands import Answer
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.origins import odd as odd_origin
from harness.origins.odd import ASKED, METHODS, path_of
from harness.origins.odd_responses import Odd, all_odd, documented_refusals, refused

ODD, ODD_ADDRESS = "odd.example.org", "203.0.113.201"
KINDS: dict[str, dict[str, Any]] = {
    "packed": {},
    "plain": {"pack_headers": False, "ground_packs": False},
    "without warm connections": {"warm": 0},
    "h3": {"transport": "h3"},
    "direct": {"when_down": "direct"},
}
"""The last has no ground: the remote reaches origins itself, over its own connection."""
ENDS = ("destroy_with_active_rq", "protocol_error")
ATTEMPTS = 2
"""The ground retries a GET once when an origin breaks off its response."""
UNREADABLE = ["a name of 70000 bytes"]
"""Envoy reads these, and a cache does not. Then it asks once more, past the cache."""
CACHES = 2
HANDSHAKE = (
    "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: YWFhYWFhYWFhYWFhYWFhYQ==",
)  # fmt: skip


@pytest.fixture(
    scope="module",
    params=[kind if kind == "packed" else pytest.param(kind, marks=pytest.mark.long) for kind in KINDS],
)
def bed(
    root_bed: None,  # noqa: ARG001 - order of set-up
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[PairBed]:
    folder = tmp_path_factory.mktemp("odd")
    with standing_pair(folder, profile="leo", records={ODD: [ODD_ADDRESS]}, **KINDS[request.param]) as standing:
        origin = Child(standing.line.internet.inside(odd_origin.command(ODD_ADDRESS)), folder / "odd.log")
        try:
            origin.wait_for_output("ready")
            standing.pair.until_piped()
            with standing.pair.without_ground() if request.param == "direct" else nullcontext():
                until_served(standing)
                yield standing
        finally:
            origin.stop()


def until_served(bed: PairBed) -> None:
    """Waits until requests get through."""
    wait_for("a response", lambda: bed.curl.get(f"http://{LAB}/x.bin").status == 200, timeout_s=60, interval_s=0.5)


def pipe_ends(bed: PairBed) -> dict[str, float]:
    """Returns the pipe's connections, or those in its place, that ended with open requests or by an error of their
    own."""
    metrics = bed.pair.remote.metrics()
    names = [f'{kind}{{envoy_cluster_name="{pool}"}}' for pool in ("pipe", "direct") for kind in ENDS]
    return {name: metrics.get(f"envoy_cluster_upstream_cx_{name}", 0) for name in names}


def ask_all(bed: PairBed, responses: list[Odd], timeout_s: int = 40) -> None:
    """Requests all of them as a client, several at a time."""
    lines = [f'url = "http://{ODD}{path_of(odd.response)}"\noutput = "/dev/null"\n' for odd in responses]
    file = bed.folder / "odd.curl"
    file.write_text("".join(lines))
    line = ["curl", "--silent", "--max-time", str(timeout_s), "--parallel", "--parallel-max", "8", "--config", file]
    subprocess.run(bed.line.clients.inside(line), check=False, stdout=subprocess.DEVNULL, timeout=2 * timeout_s)


def asked(bed: PairBed) -> dict[str, int]:
    """Returns how often the origin received a request for each path."""
    return json.loads(bed.curl.get(f"http://{ODD}{ASKED}").body)


def test_one_odd_response_ends_the_pipe(bed: PairBed) -> None:
    responses = all_odd()
    bed.uploads(1000)
    before = pipe_ends(bed)
    downloads: list[Answer] = []
    url = made_to_order(LAB, body="noise", size=200_000, chunk=5_000, pause=100)
    victims = [threading.Thread(target=lambda: downloads.append(bed.curl.get(url))) for _ in range(3)]
    for victim in victims:
        victim.start()
    ask_all(bed, responses)
    bed.uploads(1000)
    for victim in victims:
        victim.join()
    assert pipe_ends(bed) == before
    assert [(one.status, len(one.body), one.problem) for one in downloads] == [(200, 200_000, "")] * 3
    times = asked(bed)
    often = {odd.name: times.get(path_of(odd.response), 0) for odd in responses}
    most = {name: ATTEMPTS * CACHES if name in UNREADABLE else ATTEMPTS for name in often}
    assert {name: count for name, count in often.items() if not 1 <= count <= most[name]} == {}, "asked again and again"


def test_the_client_gets_101_when_the_origin_accepts_a_websocket_with_200(bed: PairBed) -> None:
    headers = [part for line in HANDSHAKE for part in ("--header", line)]

    def shaken(line: bytes, fields: bytes) -> Answer:
        path = path_of(b"HTTP/1.1 " + line + b"\r\n" + fields + b"\r\nno")
        return bed.curl.get(f"http://{ODD}{path}", *headers, timeout_s=5)

    refused = shaken(b"200 OK", b"content-length: 2\r\n")
    assert refused.status in (200, 502), refused
    assert shaken(b"403 No", b"content-length: 2\r\n").status == 403
    assert shaken(b"101 Well", b"connection: upgrade\r\nupgrade: websocket\r\n").status == 101


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("protocol", ["tcp", "SPDY/3.1", "tailscale-control-protocol"])
def test_an_upgrade_of_any_method_is_accepted_or_declined_as_the_origin_does(
    bed: PairBed, method: str, protocol: str
) -> None:
    offer = ("--request", method, "--header", "Connection: Upgrade", "--header", f"Upgrade: {protocol}")

    def offered(line: str, fields: str, body: str) -> tuple[Answer, str]:
        path = path_of(f"HTTP/1.1 {line}\r\nx-method: {method}\r\n{fields}\r\n{body}".encode())
        answer = bed.curl.get(f"http://{ODD}{path}", *offer, timeout_s=5)
        return answer, json.loads(bed.curl.get(f"http://{ODD}{METHODS}").body).get(path, "")

    accepted, seen = offered("101 Switching", f"connection: upgrade\r\nupgrade: {protocol}\r\n", "hello")
    assert (accepted.status, seen) == (101, method), accepted
    for status, body in ((200, "declined"), (204, ""), (404, "unknown"), (426, "required")):
        length = "" if status == 204 else f"content-length: {len(body)}\r\n"
        declined, seen = offered(f"{status} Odd", length, body)
        assert (declined.status, declined.body.decode(), seen) == (status, body, method), declined
        assert declined.header("x-longhaul-upgrade") is None


@pytest.mark.parametrize("protocol", ["TLS/1.2", "h2c", "foo", "TLS/1.2, HTTP/1.1"])
def test_an_upgrade_that_a_server_may_ignore_costs_nothing(bed: PairBed, protocol: str) -> None:
    path = path_of(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nplain")
    answer = bed.curl.get(f"http://{ODD}{path}", "--header", "Connection: Upgrade", "--header", f"Upgrade: {protocol}")
    assert (answer.status, answer.body) == (200, b"plain"), answer


def test_the_pair_refuses_the_odd_responses_that_the_guide_lists_and_no_others(bed: PairBed) -> None:
    assert refused(lambda path: bed.curl.get(f"http://{ODD}{path}")) == documented_refusals()
