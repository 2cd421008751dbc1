"""A pair with `split.transport: h3`: requests cross over QUIC, and only the pair's certificate gives access."""

from __future__ import annotations

import base64
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from e2e.pair_bed import LAB, TODAY, PairBed, standing_pair
from harness.boxes.pair import GROUND_NAME, PIPE_PORT
from harness.clients.http3 import H3Answer, h3get
from harness.host.artifacts import built
from harness.lab.line import FAR


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:  # noqa: ARG001 - order of set-up
    built("h3get")
    with standing_pair(tmp_path_factory.mktemp("h3"), transport="h3") as standing:
        standing.until_warm()
        yield standing


def pipe_connections(bed: PairBed, kind: str) -> float:
    return bed.pair.remote.metrics()[f'envoy_cluster_upstream_cx_{kind}{{envoy_cluster_name="pipe"}}']


def test_the_pipe_is_quic_and_requests_open_nothing(bed: PairBed) -> None:
    opened = pipe_connections(bed, "http3_total")
    assert opened >= 1
    assert opened == pipe_connections(bed, "total"), "nothing else than QUIC"
    url = f"http://{LAB}/plain.bin"
    answer = bed.curl.get(url)
    assert (answer.status, answer.body) == (200, bed.original(url))
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda n: bed.curl.get(f"http://{LAB}/many-{n}.bin"), range(40)))
    assert [one.status for one in answers] == [200] * 40
    assert pipe_connections(bed, "total") == opened


def test_headers_are_compressed_over_h3(bed: PairBed) -> None:
    bed.packs_headers()


def test_large_answers_uploads_and_https_come_through_whole(bed: PairBed) -> None:
    bed.downloads(3_000_000)
    bed.uploads(300_000)
    assert bed.curl.get(f"https://{TODAY}/x.bin", "--resolve", f"{TODAY}:443:{bed.address(TODAY)}").status == 200


def test_a_response_before_the_end_of_its_request_arrives(bed: PairBed) -> None:
    body = bed.folder / "unread.bin"
    body.write_bytes(b"u" * 2_000_000)
    url = f"http://{LAB}/_/echo"
    answers = [bed.curl.get(url, "--data-binary", f"@{body}", "--header", "Expect:", timeout_s=60) for _ in range(8)]
    assert [one.status for one in answers] == [200] * 8, "the origin reads nothing of the body"


def knock(bed: PairBed, *shown: str | Path) -> H3Answer:
    """Sends a request over QUIC from a host that is not the remote."""
    return h3get(
        Path(bed.pair.identity["ca"]), "-connect", f"{FAR}:{PIPE_PORT}", "-servername", GROUND_NAME, *shown,
        f"https://{LAB}/x.bin", namespace=bed.line.near,
    )[0]  # fmt: skip


def test_without_the_pair_s_certificate_nobody_gets_in(bed: PairBed) -> None:
    identity = bed.pair.identity
    welcome = knock(bed, "-cert", identity["cert"], "-key", identity["key"])
    assert welcome.status == 200, welcome
    stranger = bed.authority.issue("ship.example")
    for shown in ((), ("-cert", stranger.cert, "-key", stranger.key)):
        answer = knock(bed, *shown)
        assert (answer.status, bool(answer.problem)) == (0, True), answer


def _datagrams(count: int) -> Iterator[bytes]:
    """Datagrams that are not valid QUIC: initial packets without keys, short headers of unknown connections, noise."""
    chance = random.Random(1)

    def noise(least: int, most: int) -> bytes:
        return chance.randbytes(chance.randint(least, most))

    for _ in range(count):
        first = bytes([chance.choice((0xC0, 0xD0, 0xE0, 0xF0)) | chance.randrange(16)])
        version = chance.choice((b"\0\0\0\1", b"\x6b\x33\x43\xcf", b"\0\0\0\0", noise(4, 4)))
        names = b"".join(bytes([len(name)]) + name for name in (noise(0, 20), noise(0, 20)))
        yield (first + version + names + b"\0" + noise(20, 1100)).ljust(1200, b"\0")
        yield bytes([0x40 | chance.randrange(64)]) + noise(20, 1100)
        yield first + version + b"\xff" + noise(0, 1100)
        yield noise(1, 1200)


SEND = """
import base64, socket, sys
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for line in open(sys.argv[1]):
    link.sendto(base64.b64decode(line), (sys.argv[2], int(sys.argv[3])))
"""


def test_datagrams_of_a_stranger_end_the_pipe(bed: PairBed) -> None:
    file = bed.folder / "datagrams"
    file.write_text("".join(base64.b64encode(one).decode() + "\n" for one in _datagrams(500)))
    before = pipe_connections(bed, "destroy")
    with ThreadPoolExecutor(1) as pool:
        download = pool.submit(bed.downloads, 1_000_000)
        bed.line.near.run(sys.executable, "-c", SEND, str(file), FAR, str(PIPE_PORT))
        download.result()
    assert pipe_connections(bed, "destroy") == before
    identity = bed.pair.identity
    assert knock(bed, "-cert", identity["cert"], "-key", identity["key"]).status == 200
