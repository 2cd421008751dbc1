"""A pair with `split.transport: h3`: requests cross on QUIC, and nobody gets in without the pair's certificate."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from e2e.pair_bed import LAB, TODAY, PairBed, standing_pair
from experiments.line import FAR
from harness.artifacts import built
from harness.http3 import H3Answer, h3get
from harness.pair import GROUND_NAME, PIPE_PORT, REMOTE_ADMIN


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:  # noqa: ARG001 - order of set-up
    built("h3get")
    with standing_pair(tmp_path_factory.mktemp("h3"), transport="h3") as standing:
        standing.until_warm()
        yield standing


def pipe_connections(bed: PairBed, kind: str) -> float:
    return bed.pair.remote.metrics(REMOTE_ADMIN)[f'envoy_cluster_upstream_cx_{kind}{{envoy_cluster_name="pipe"}}']


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


def test_headers_are_packed_on_it(bed: PairBed) -> None:
    bed.packs_headers()


def test_large_answers_uploads_and_https_come_through_whole(bed: PairBed) -> None:
    bed.downloads(3_000_000)
    bed.uploads(300_000)
    assert bed.curl.get(f"https://{TODAY}/x.bin", "--resolve", f"{TODAY}:443:{bed.address(TODAY)}").status == 200


def knock(bed: PairBed, *shown: str | Path) -> H3Answer:
    """A request over QUIC by somebody who is not the remote."""
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
