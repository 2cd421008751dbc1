"""Ranges and labelled files arrive as direct. Fields that describe a body are true of the body that arrived."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.pair_bed import LAB, PairBed, standing_pair
from harness.clients.bodies import Fetch, labelled_files_changed, ranges_wrong, stale_digests
from harness.clients.commands import Answer, Curl
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.origins import labelled as labelled_origin

LABELLED, ADDRESS = "labelled.example.org", "203.0.113.202"


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:  # noqa: ARG001 - order of set-up
    folder = tmp_path_factory.mktemp("bodies")
    with standing_pair(folder, profile="leo", records={LABELLED: [ADDRESS]}, warm=0) as standing:
        origin = Child(standing.line.internet.inside(labelled_origin.command(ADDRESS)), folder / "labelled.log")
        try:
            origin.wait_for_output("ready")
            standing.pair.until_piped()
            wait_for("a response", lambda: standing.curl.get(f"http://{LAB}/x.bin").status == 200, timeout_s=60)
            yield standing
        finally:
            origin.stop()


@pytest.fixture
def ways(bed: PairBed) -> tuple[Fetch, Fetch]:
    client = bed.curl
    direct = Curl(bed.folder, bed.line.internet, "--resolve", f"{LABELLED}:80:{ADDRESS}")

    def through(path: str, *options: str) -> Answer:
        return client.get(f"http://{LABELLED}{path}", *options)

    def past(path: str, *options: str) -> Answer:
        return direct.get(f"http://{LABELLED}{path}", *options)

    return through, past


def test_a_range_is_the_origins_on_a_pair(ways: tuple[Fetch, Fetch]) -> None:
    few = {"types": ("js", "tgz"), "forms": ("negotiated", "gzip"), "accepted": (None, "gzip")}
    wrong, asked = ranges_wrong(*ways, **few, states=("cold", "stored"))
    assert not wrong, f"{len(wrong)} of {asked}"
    assert asked == 32


@pytest.mark.long
def test_every_range_is_the_origins_on_a_pair(ways: tuple[Fetch, Fetch]) -> None:
    wrong, asked = ranges_wrong(*ways)
    assert not wrong, f"{len(wrong)} of {asked}"
    assert asked == 540


@pytest.mark.parametrize("times", [1, pytest.param(4, marks=pytest.mark.long)])
def test_labelled_files_arrive_as_sent_on_a_pair(ways: tuple[Fetch, Fetch], times: int) -> None:
    changed, asked = labelled_files_changed(*ways, times=times)
    assert not changed, f"{len(changed)} of {asked}"
    assert asked == 36 * times


@pytest.mark.parametrize("times", [1, pytest.param(4, marks=pytest.mark.long)])
def test_no_field_describes_former_bytes_on_a_pair(ways: tuple[Fetch, Fetch], times: int) -> None:
    stale, asked = stale_digests(*ways, times=times)
    assert not stale, f"{len(stale)} of {asked}"
    assert asked == 30 * times
