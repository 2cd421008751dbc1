"""A pair over a link that loses one percent of its packets and reorders others: slower, but every response is whole."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from e2e import upgrades
from e2e.pair_bed import LAB, SOCKETS, TODAY, PairBed, standing_pair
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.lab.contenders.base import rules

LOSSY = {
    f"{way}.{key}": value
    for way in ("down", "up")
    for key, value in (("random_loss", "0.01"), ("reordering", "{ probability = 0.02, held_back_ms = 8 }"))
}


ELSEWHERE = """chain sockets {{
    type nat hook prerouting priority dstnat
    ip daddr {address} tcp dport 80 dnat to {address}:8000
}}"""
"""The bed's own origins use the origin's port 80. Packets to this address go to the WebSocket server instead."""


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:  # noqa: ARG001 - order of set-up
    with standing_pair(tmp_path_factory.mktemp("lossy"), link=LOSSY) as standing:
        standing.until_warm()
        yield standing


def test_a_hundred_objects_at_once_come_whole(bed: PairBed) -> None:
    names = [f"object-{number}.png" for number in range(100)]
    with ThreadPoolExecutor(25) as pool:
        answers = list(pool.map(lambda name: bed.curl.get(f"http://{LAB}/{name}", timeout_s=60), names))
    assert [(one.status, one.problem) for one in answers] == [(200, "")] * 100
    for name, answer in list(zip(names, answers, strict=True))[::25]:
        assert answer.body == bed.original(f"http://{LAB}/{name}"), name
    counted = bed.counted()
    lost = sum(counted[way]["dropped"]["random_loss"]["packets"] for way in ("down", "up"))
    assert lost, "the link lost nothing: nothing was tested"


def test_a_download_an_upload_and_https_come_whole(bed: PairBed) -> None:
    bed.downloads(2_000_000, timeout_s=90)
    bed.uploads(300_000, timeout_s=90)
    address = bed.address(TODAY)
    assert bed.curl.get(f"https://{TODAY}/page.html", "--resolve", f"{TODAY}:443:{address}", timeout_s=60).status == 200


def test_a_websocket_opens_and_carries_bytes_both_ways(bed: PairBed) -> None:
    program = Path(upgrades.__file__)
    address = bed.address(SOCKETS)
    serve = bed.line.internet.inside([sys.executable, program, "serve", address, "8000"])
    command = [sys.executable, program, "ask", address, "80", SOCKETS, "200000"]
    with (
        Child(serve, bed.folder / "sockets.log") as server,
        rules(bed.line.internet, ELSEWHERE.format(address=address)),
    ):
        server.wait_for_output("ready")
        done = subprocess.run(bed.line.clients.inside(command), capture_output=True, text=True, timeout=90, check=True)
    assert done.stdout.split() == ["HTTP/1.1", "101", "Switching", "Protocols", "200000"]


def test_an_end_that_starts_again_under_load_serves_again(bed: PairBed) -> None:
    for end in (bed.pair.remote, bed.pair.ground):
        urls = [f"http://{LAB}/load-{number}.bin" for number in range(40)]
        with ThreadPoolExecutor(8) as pool:
            load = [pool.submit(bed.curl.get, url, timeout_s=30) for url in urls]
            end.quit_envoy()
            answers = [one.result() for one in load]
        for url, answer in zip(urls, answers, strict=True):
            # The response is whole or visibly an error. It never looks whole while a part is missing: curl reports a
            # connection that closes inside a body.
            assert answer.status in (0, 200, 502, 503, 504), answer
            assert answer.problem or answer.status != 200 or answer.body == bed.original(url), url
        wait_for(
            "the pair",
            lambda: bed.curl.get(f"http://{LAB}/back.bin", timeout_s=20).status == 200,
            timeout_s=90,
            interval_s=0.5,
        )
