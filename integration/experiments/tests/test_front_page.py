"""The table of the front page: rows from loads, and groups in which each load of a pair is a first visit."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from experiments.cli import main
from experiments.front_page import DIRECT, EDGE, FIRST, LINKS, LISTED, NAME, PEERS, SECOND, document, groups, rows
from experiments.plan import Group
from experiments.results import Results
from experiments.runner import expected_total_ms
from harness.lab.contenders import CONTENDERS
from harness.lab.ideal import Weight
from harness.lab.measure import Run

TIMES = {DIRECT: 12_000, EDGE: 9_000, FIRST: 6_000, SECOND: 4_000, LISTED: 4_500}
KEYS = ("direct_ms", "edge_ms", "pair_first_ms", "pair_second_ms", "pair_listed_ms")


def loads(scheme: str, times: dict[str, int], page: str = "cnn", **more: Any) -> list[Run]:
    """Returns one load of each way over the satellite."""
    return [Run(NAME, "geo", page, scheme, way, 1, load_ms=ms, objects=1, **more) for way, ms in times.items()]


def test_a_row_has_the_times_of_all_ways_and_the_best_peer() -> None:
    peers = {"squid-explicit": 8_000, "envoy-pair": 10_000}
    found = rows(Results([*loads("http", TIMES), *loads("https", TIMES | peers)], {}))
    assert [row["scheme"] for row in found] == ["http", "https"]
    assert all([row[key] for key in KEYS] == list(TIMES.values()) for row in found)
    assert found[0]["best_peer"] is None
    assert found[1]["best_peer"] == {"name": CONTENDERS["squid-explicit"].title, "ms": 8_000}
    assert (found[0]["rtt_ms"], found[0]["down_mbit"]) == (600, 20)
    assert (found[0]["ideal_ms"], found[0]["floor_ms"]) == (None, None), "the page was not weighed"


def test_a_row_has_the_bounds_of_its_page() -> None:
    (row,) = rows(Results(loads("http", TIMES), {"cnn": Weight(1_448_000, 724_000)}))
    assert (row["ideal_ms"], row["floor_ms"]) == (2400, 900)


def test_a_load_that_failed_is_counted_and_gives_no_time() -> None:
    broken = loads("http", {EDGE: 10}, problem="3 objects absent")
    (row,) = rows(Results([*loads("http", {DIRECT: 12_000, FIRST: 6_000}), *broken], {}))
    assert (row["edge_ms"], row["failed"], row["loads"]) == (None, 1, 0)


def test_the_file_names_the_command_the_commit_and_the_machine() -> None:
    text = {"runs": [asdict(run) for run in loads("http", TIMES)], "weights": {}, "repeats": 1,
            "when": "2026-11-22 20:00 UTC"}  # fmt: skip
    made = document(text, "2 cores", note="shared", commit="abc")
    assert made["command"] == "sudo make results QUICK=1"
    assert (made["commit"], made["machine"], made["machine_note"], made["date"]) == (
        "abc", "2 cores", "shared", "2026-11-22",
    )  # fmt: skip
    assert document({**text, "repeats": 3}, "", note="", commit="")["command"] == "sudo make results"


@pytest.mark.parametrize("repeats", [1, 3])
def test_every_link_has_all_ways_and_each_way_as_many_loads(repeats: int) -> None:
    made = groups(repeats)
    assert {group.link_name for group in made} == set(LINKS)
    turns = [turn for group in made for turn in group.turns(1)]
    assert {turn.contender for turn in turns} == {*TIMES, *PEERS} <= set(CONTENDERS)

    def numbers(link_name: str, contender: str, scheme: str) -> list[int]:
        wanted = (link_name, contender, scheme, "cnn")
        return sorted(turn.repeat for turn in turns if (turn.link, turn.contender, turn.scheme, turn.page) == wanted)

    usual, fast, more = (list(range(1, last + 1)) for last in (repeats, 5, 7))
    for way in (FIRST, SECOND, LISTED):
        assert numbers("geo", way, "https") == numbers("cdma-average", way, "https") == usual
        assert numbers("leo", way, "http") == usual
    assert numbers("leo", DIRECT, "http") == numbers("leo", EDGE, "https") == fast, "they differ by chance"
    assert numbers("cdma-average", EDGE, "http") == usual
    assert numbers("cdma-average", EDGE, "https") == (more if repeats > 1 else usual), "they lie near those of direct"


def test_no_bed_has_two_standing_pairs_or_a_second_visit_of_an_http_page_by_one() -> None:
    for group in groups(3):
        assert group.as_shipped
        pairs = {FIRST, SECOND, LISTED} & set(group.contenders)
        assert pairs in (set(), {FIRST, SECOND}, {LISTED})
        assert len(group.schemes) == 1, "servers of http pages refuse https"
        assert (group.contenders, group.schemes) != ((LISTED,), ("http",)) or group.repeats == 1


def test_the_whole_page_takes_an_hour_at_most() -> None:
    assert expected_total_ms(groups(3)) < 60 * 60_000


def test_a_second_day_comes_after_the_first_visit_whatever_the_draw() -> None:
    group = Group(NAME, "geo", ("cnn",), ("https",), (DIRECT, FIRST, EDGE, SECOND), 20)
    orders = [[turn.contender for turn in group.turns(1) if turn.repeat == repeat] for repeat in range(1, 21)]
    assert all(order.index(FIRST) < order.index(SECOND) for order in orders)
    assert {order.index(name) for order in orders for name in (DIRECT, EDGE)} == {0, 1, 2, 3}, "they take turns"


def test_the_command_knows_it_and_keeps_it_out_of_the_whole_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "no-such"]) == 2
    assert f"ONLY={NAME}" in capsys.readouterr().err
    from experiments.catalogue import EXPERIMENTS

    assert NAME not in EXPERIMENTS
    assert all(isinstance(group, Group) for group in groups(1))
