"""A pair over a very slow link, where a new connection costs more than it saves. All requests share the pipe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from e2e.pair_bed import LAB, TODAY, PairBed, standing_pair
from harness.host.waiting import wait_for
from harness.lab.line import is_instant

STEERED = [f"h{number}.example.org" for number in range(12)]


@pytest.fixture(scope="module")
def standing(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:  # noqa: ARG001 - order of set-up
    with standing_pair(tmp_path_factory.mktemp("slow"), profile="cdma-average", steered=STEERED) as bed:
        bed.pair.until_piped()
        yield bed


@pytest.fixture
def bed(standing: PairBed) -> PairBed:
    """The same bed. The counters of its link start here."""
    assert standing.line.link
    standing.line.link.reset()
    return standing


def test_tls_is_carried_by_the_pipe_and_stays_the_origins_own(bed: PairBed) -> None:
    address = bed.address(TODAY)
    answer = bed.curl.get(f"https://{TODAY}/x.bin", "--range", "0-99", "--resolve", f"{TODAY}:443:{address}")
    # curl trusts only the origins' authority, so this connection ended at an origin.
    assert answer.status in (200, 206), answer
    assert bed.opened() == 0


def test_names_are_asked_over_the_pipe(bed: PairBed) -> None:
    assert bed.dig(TODAY, "A").addresses() == [bed.address(TODAY)]
    assert bed.opened() == 0
    assert bed.counted()["dns"]["queries"] == 0, "nothing but the pipe crosses the link"


def test_the_names_of_a_page_are_answered_at_once_and_checked_without_a_connection_each(bed: PairBed) -> None:
    with ThreadPoolExecutor(len(STEERED)) as pool:
        answers = list(pool.map(lambda name: bed.dig(name, "A"), STEERED))
    addresses = {address for answer in answers for address in answer.addresses()}
    assert (len(addresses), all(map(is_instant, addresses))) == (len(STEERED), True)
    answer = bed.curl.get(f"http://{STEERED[0]}/x.bin")
    assert answer.status == 200, answer
    assert bed.opened() == 0


def test_a_changed_link_is_no_problem_while_envoy_checks_the_ground_again(bed: PairBed) -> None:
    remote, pipe = bed.pair.remote, '{envoy_cluster_name="pipe"}'
    text, before = remote.config.read_text(), len(remote.output())
    changed = re.sub(r'"rtt": "(\d+)ms"', lambda found: f'"rtt": "{int(found[1]) + 100}ms"', text)
    assert changed != text

    def is_used_again() -> bool:
        metrics = remote.metrics()
        is_changing = metrics["envoy_cluster_manager_warming_clusters{}"] > 0
        return not is_changing and metrics[f"envoy_cluster_membership_healthy{pipe}"] > 0

    def until_applied(number: int) -> None:
        wait_for("a change", lambda: remote.output()[before:].count("changed: applied") == number, timeout_s=30)

    try:
        remote.config.write_text(changed)
        until_applied(1)
        assert bed.curl.get(f"http://{STEERED[0]}/x.bin").status == 200
        wait_for("the health check", is_used_again, timeout_s=60, interval_s=0.2)
        assert "problem (" not in remote.output()[before:], remote.output()
    finally:
        remote.config.write_text(text)
        until_applied(2)
    # The next test counts health checks of the pool that was there before.
    wait_for("the health check", is_used_again, timeout_s=60, interval_s=0.2)


def test_connections_that_fill_the_link_do_not_make_the_ground_count_as_down(bed: PairBed) -> None:
    address = bed.address(LAB)

    def download(_: int) -> tuple[int, int, str]:
        url = f"https://{LAB}/_/answer?size=25000"
        answer = bed.curl.get(url, "--resolve", f"{LAB}:443:{address}", timeout_s=90)
        return answer.status, len(answer.body), answer.problem

    before = bed.pair.checks()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(download, range(8))) == [(200, 25_000, "")] * 8
    after = bed.pair.checks()
    assert after["attempt"] >= before["attempt"] + 2, "the load ended before a check"
    assert after["failure"] == before["failure"]
