"""A pair in which at most one end compresses headers. Every request is served, with plain headers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.pair_bed import LAB, LISTED, PairBed, standing_pair
from harness.host.waiting import wait_for


@pytest.fixture(scope="module", params=["only the remote", "only the ground", "neither"])
def bed(
    root_bed: None,  # noqa: ARG001 - order of set-up
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[PairBed]:
    remote, ground = request.param == "only the remote", request.param == "only the ground"
    folder = tmp_path_factory.mktemp("unpacked")
    with standing_pair(folder, profile="leo", pack_headers=remote, ground_packs=ground) as standing:
        standing.pair.until_piped()
        yield standing


def test_every_request_is_served_and_shows_nothing_of_the_packing(bed: PairBed) -> None:
    for number in range(10):
        url = f"http://{LAB}/plain-{number}.bin"
        answer = bed.curl.get(url, "--header", "X-Of-The-Client: kept", "--cookie", "a=b")
        assert (answer.status, answer.body) == (200, bed.original(url))
        assert not [name for name, _ in answer.headers if name.startswith("x-longhaul")]
    sent = bed.curl.get(f"http://{LAB}/_/echo", "--data-binary", "twelve bytes")
    assert sent.status == 200, sent
    wait_for("the log", lambda: any(one.get("path") == "/_/echo" for one in bed.pair.remote.requests()))
    logged = [one["path"] for one in bed.pair.remote.requests() if one["authority"] == LAB]
    assert [one for one in logged if "plain" in one] == [f"/plain-{number}.bin" for number in range(10)]
    assert bed.curl.get(f"https://{LISTED}/page.html").status == 200


def test_no_header_was_compressed(bed: PairBed) -> None:
    assert bed.curl.get(f"http://{LAB}/counted.bin").status == 200
    for end in (bed.pair.remote, bed.pair.ground):
        unpacked = [
            value
            for name, value in end.metrics().items()
            if name.startswith("longhaul_header_compression_unpacked_total")
        ]
        assert sum(unpacked) == 0
