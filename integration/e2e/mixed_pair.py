"""A pair whose ends are of different versions: `make test-mixed FROM=REV`.

pytest runs this file only by its name. `LONGHAUL_MIXED` is the folder with the products of `make build` at the other
commit. Each protocol of a pair has a test here, so that ends can be upgraded in any order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from e2e import test_deltas
from e2e.bed import made_to_order
from e2e.pair_bed import LAB, LISTED, TODAY, PairBed, standing_pair
from harness.boxes.grounds import LINK, grounds
from harness.boxes.pair import FAIR, names_cross, until_names_cross
from harness.boxes.pep import command
from harness.host.artifacts import built
from harness.host.waiting import wait_for

ACCEPT = ("--header", "Accept: text/html,*/*;q=0.8", "--header", "Accept-Encoding: gzip, deflate")


def other() -> Path:
    """Returns the command of the other version. Its programs and filters stand beside it."""
    named = os.environ.get("LONGHAUL_MIXED")
    assert named, "LONGHAUL_MIXED names no folder: run `make test-mixed FROM=REV`"
    return Path(named) / "longhaul"


@pytest.fixture(scope="module", params=["older remote", "older ground"])
def bed(
    root_bed: None,  # noqa: ARG001 - order of set-up
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[PairBed]:
    this = built("longhaul")
    remote, ground = (other(), this) if request.param == "older remote" else (this, other())
    folder = tmp_path_factory.mktemp("mixed")
    programs = {"remote_program": remote, "ground_program": ground}
    with standing_pair(folder, page={"bundle": True}, **programs) as standing:
        standing.until_warm()
        yield standing


def counted(bed: PairBed, name: str) -> float:
    """Returns a counter of both ends together, over all labels."""
    ends = (bed.pair.remote, bed.pair.ground)
    found = [value for end in ends for key, value in end.metrics().items() if key.startswith(name)]
    return sum(found)


def test_requests_names_and_tls_pass(bed: PairBed) -> None:
    url = f"http://{LAB}/mixed.bin"
    answer = bed.curl.get(url, "--header", "X-Of-The-Client: kept")
    assert (answer.status, answer.body) == (200, bed.original(url))
    assert not [name for name, _ in answer.headers if name.startswith("x-longhaul")]
    assert bed.curl.get(f"https://{LISTED}/page.html").status == 200
    assert bed.dig(TODAY, "A").addresses() == [bed.address(TODAY)]
    assert bed.curl.get(made_to_order(LAB, size=200_000)).status == 200


def test_many_new_names_at_once_are_found(bed: PairBed) -> None:
    names = [f"h{number}.example.org" for number in range(20)]
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda name: bed.dig(name, "A"), names))
    assert [one.addresses() for one in answers] == [[bed.address(name)] for name in names], answers
    ways = {key for key, value in bed.pair.remote.metrics().items() if key.startswith("coredns_lookups_") and value}
    assert not [key for key in ways if 'way="stream"' in key], "an older end has no such streams"


def test_headers_are_compressed(bed: PairBed) -> None:
    bed.packs_headers()
    assert counted(bed, 'longhaul_header_compression_refused_total{reason="format"}') == 0


def test_objects_are_bundled(bed: PairBed) -> None:
    before = counted(bed, "longhaul_bundling_objects_total")
    assert bed.curl.get(made_to_order(LAB, body="page", host=[TODAY, LAB]), *ACCEPT).status == 200
    wait_for("objects sent", lambda: counted(bed, "longhaul_bundling_objects_total") > before, timeout_s=30)
    assert counted(bed, "longhaul_bundling_malformed_total") == 0


@pytest.mark.parametrize("older", ["remote_program", "ground_program"])
def test_pages_pass_without_deltas(folder: Path, older: str) -> None:
    link = {"rtt": "20ms", "down": "50mbit", "up": "20mbit", "price": "metered"}
    site = "www.split.test"
    with test_deltas.standing(folder, link=link, **{older: other()}) as bed:
        for number in range(3):
            page = bed.origin.put(site, f"/{number}", test_deltas.article(site, number))
            assert bed.load(site, f"/{number}")[1] == page
        fields = [name for one in bed.origin.asked for name in one if name.startswith("x-longhaul")]
        assert not fields, "no origin sees what an older ground does not remove"


def test_the_newer_end_says_where_the_time_goes(bed: PairBed, request: pytest.FixtureRequest) -> None:
    newer = bed.pair.ground if "older remote" in request.node.name else bed.pair.remote
    began = json.loads(command("status", "--why", "--json", "--state", newer.state).stdout)
    assert not began["problems"], began["problems"]

    def why() -> dict[str, Any] | None:
        for number in range(3):
            bed.curl.get(made_to_order(LAB, size=2000 + number))
        found = json.loads(command("status", "--why", "--json", "--state", newer.state).stdout)["why"]
        return found if found and found["measured"]["requests"] else None

    measured = wait_for("figures", why, timeout_s=60, interval_s=0.5)["measured"]
    # An older ground tells its remote nothing of the origins behind it.
    assert (measured["connects"] is None) == (newer is bed.pair.remote)


@pytest.mark.parametrize("by_name", [False, True], ids=["two grounds", "one name"])
def test_no_client_is_named_while_one_of_two_grounds_is_older(folder: Path, *, by_name: bool) -> None:
    """The older ground would take the name for bytes of the client."""
    with grounds(folder, by_name=by_name, link=LINK | FAIR, second_program=other()) as bed:
        older = bed.grounds[1]
        if b"names.pair.invalid" in other().read_bytes():
            # The other version reads names, too.
            until_names_cross(bed.remote)
            return
        wait_for("the question", lambda: any("names.pair.invalid" in str(one) for one in older.pep.requests()))
        assert not names_cross(bed.remote)
        older.kill()
        until_names_cross(bed.remote)
