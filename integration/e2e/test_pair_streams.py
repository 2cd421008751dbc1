"""A pair that carries clients' TLS and DNS on streams of the pipe. They are open before a client needs them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from e2e.pair_bed import RTT_S, TODAY, WARM, PairBed, standing_pair
from harness.host.waiting import quickest, wait_for

FARTHER = {f"{way}.delay_ms": f"{RTT_S * 500:.0f}" for way in ("down", "up")}
"""The files say LTE, where a pair has streams. Round trips last as long as over a satellite, so they can be counted."""


@pytest.fixture(scope="module")
def standing(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:  # noqa: ARG001 - order of set-up
    folder = tmp_path_factory.mktemp("streams")
    with standing_pair(folder, profile="rural-lte", link=FARTHER, warm=WARM, restart_wait="60s") as bed:
        yield bed


@pytest.fixture
def bed(standing: PairBed) -> PairBed:
    """The same bed with all streams open. The counters of its link start here."""
    standing.until_warm()
    assert standing.line.link
    standing.line.link.reset()
    return standing


def test_an_https_page_stays_the_origins_own_and_its_first_byte_takes_two_round_trips(bed: PairBed) -> None:
    def load() -> float:
        bed.until_warm()
        answer = bed.curl.get(f"https://{TODAY}/page.html", "--resolve", f"{TODAY}:443:{bed.address(TODAY)}")
        # curl trusts only the origins' authority, so this connection ended at an origin.
        assert answer.status == 200, answer
        return answer.seconds

    seconds = quickest(load, 2.9 * RTT_S)
    assert 2 * RTT_S <= seconds < 2.9 * RTT_S, f"{seconds:.2f} s"
    assert bed.opened() == 0


def test_connections_that_follow_one_another_take_streams_that_are_open_already(bed: PairBed) -> None:
    # Of several unused streams Envoy takes the newest. That one replaces the last one used, and it would take a round
    # trip more.
    names = [f"h{number}.example.org" for number in range(16)]

    def get(name: str) -> float:
        answer = bed.curl.get(
            f"https://{name}/x.bin", "--range", "0-99", "--resolve", f"{name}:443:{bed.address(name)}"
        )
        assert answer.status in (200, 206), answer
        return answer.seconds

    def slowest_s() -> float:
        bed.until_warm()
        with ThreadPoolExecutor(len(names)) as pool:
            return max(pool.map(get, names))

    assert quickest(slowest_s, 2.9 * RTT_S) < 2.9 * RTT_S
    assert bed.opened() == 0


def test_names_are_asked_on_a_stream(bed: PairBed) -> None:
    assert bed.dig(TODAY, "A").addresses() == [bed.address(TODAY)]
    assert bed.opened() == 0
    assert bed.counted()["dns"]["queries"] == 0, "nothing but the pipe crosses the link"


def test_a_ground_that_was_killed_costs_a_connection_time_and_its_streams_come_back(bed: PairBed) -> None:
    bed.kill_ground()
    wait_for(
        "the loss of the streams", lambda: bed.pair.connections("warm")["unused"] < WARM, timeout_s=20, interval_s=0.1
    )
    resolve = ("--resolve", f"{TODAY}:443:{bed.address(TODAY)}")
    answer = bed.curl.get(f"https://{TODAY}/page.html", *resolve, timeout_s=60)
    assert answer.status == 200, answer
    bed.until_warm()
