"""A remote with several grounds: one of them dies, ends or comes back, and no GET is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.grounds import GroundsBed, grounds
from harness.waiting import wait_for


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GroundsBed]:
    with grounds(tmp_path_factory.mktemp("grounds")) as running:
        yield running


def test_the_first_ground_serves_while_it_responds(bed: GroundsBed) -> None:
    load = bed.load("first", threads=2)
    load.until(40)
    load.stop()
    assert load.failures == []
    first, second = bed.grounds
    wait_for("the log of the first ground", lambda: first.served("first") >= load.done)
    assert second.served("first") == 0


def test_no_get_is_lost_when_a_ground_dies_and_its_clients_return_when_it_is_back(bed: GroundsBed) -> None:
    first, second = bed.grounds
    load = bed.load("kill")
    load.until(60)
    first.kill()
    load.until(200)
    load.stop()
    assert load.failures == []
    wait_for("the log of the second ground", lambda: second.served("kill") > 100)
    first.pep.__enter__()

    def is_back() -> bool:
        after = bed.load("back", threads=1)
        after.until(3)
        after.stop()
        assert after.failures == []
        return first.served("back") > 0

    wait_for("the first ground in use", is_back, timeout_s=30, interval_s=0.2)


def test_no_get_is_lost_when_a_ground_ends(bed: GroundsBed) -> None:
    first, second = bed.grounds
    load = bed.load("term")
    load.until(60)
    first.pep.child.stop()
    load.until(200)
    load.stop()
    assert load.failures == []
    wait_for("the log of the second ground", lambda: second.served("term") > 100)
    first.pep.__enter__()
