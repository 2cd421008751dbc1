"""The table of the front page: rows from loads, and groups in which each load of a pair is a first visit."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from experiments.cli import main
from experiments.front_page import DIRECT, EDGE, LINKS, NAME, PAIR, PEERS, document, groups, rows
from experiments.plan import Group
from experiments.results import Results
from harness.lab.contenders import CONTENDERS
from harness.lab.ideal import Weight
from harness.lab.measure import Run

TIMES = {DIRECT: 12_000, EDGE: 9_000, PAIR: 4_000}


def loads(scheme: str, times: dict[str, int], page: str = "cnn", **more: Any) -> list[Run]:
    """Returns one load of each way over the satellite."""
    return [Run(NAME, "geo", page, scheme, way, 1, load_ms=ms, objects=1, **more) for way, ms in times.items()]


def test_a_row_has_the_times_of_all_ways_and_the_best_peer() -> None:
    peers = {"squid-explicit": 8_000, "envoy-pair": 10_000}
    found = rows(Results([*loads("http", TIMES), *loads("https", TIMES | peers)], {}))
    assert [(row["scheme"], row["direct_ms"], row["edge_ms"], row["pair_ms"]) for row in found] == [
        ("http", 12_000, 9_000, 4_000), ("https", 12_000, 9_000, 4_000),
    ]  # fmt: skip
    assert found[0]["best_peer"] is None
    assert found[1]["best_peer"] == {"name": CONTENDERS["squid-explicit"].title, "ms": 8_000}
    assert (found[0]["rtt_ms"], found[0]["down_mbit"]) == (600, 20)
    assert (found[0]["ideal_ms"], found[0]["floor_ms"]) == (None, None), "the page was not weighed"


def test_a_row_has_the_bounds_of_its_page() -> None:
    (row,) = rows(Results(loads("http", TIMES), {"cnn": Weight(1_448_000, 724_000)}))
    assert (row["ideal_ms"], row["floor_ms"]) == (2400, 900)


def test_a_load_that_failed_is_counted_and_gives_no_time() -> None:
    broken = loads("http", {EDGE: 10}, problem="3 objects absent")
    (row,) = rows(Results([*loads("http", {DIRECT: 12_000, PAIR: 4_000}), *broken], {}))
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
def test_no_bed_loads_a_page_twice_by_the_same_way(repeats: int) -> None:
    made = groups(repeats)
    assert {group.link_name for group in made} == set(LINKS)
    for group in made:
        turns = [(turn.page, turn.scheme, turn.contender) for turn in group.turns(1)]
        assert len(turns) == len(set(turns))
        assert set(group.contenders) in ({DIRECT, EDGE, PAIR, *PEERS}, {DIRECT, EDGE})
        assert set(group.contenders) <= set(CONTENDERS)

    def numbers(link_name: str, contender: str, scheme: str) -> list[int]:
        return [
            group.first_repeat
            for group in made
            if group.link_name == link_name and contender in group.contenders and scheme in group.schemes
        ]

    usual, more = list(range(1, repeats + 1)), list(range(1, 8))
    assert numbers("geo", PAIR, "https") == numbers("cdma-average", PAIR, "https") == usual
    assert numbers("leo", PAIR, "http") == more, "loads on a fast link differ by chance"
    assert numbers("cdma-average", EDGE, "http") == usual
    assert numbers("cdma-average", EDGE, "https") == (more if repeats > 1 else usual), "they lie near those of direct"


def test_the_command_knows_it_and_keeps_it_out_of_the_whole_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "no-such"]) == 2
    assert f"ONLY={NAME}" in capsys.readouterr().err
    from experiments.catalogue import EXPERIMENTS

    assert NAME not in EXPERIMENTS
    assert all(isinstance(group, Group) for group in groups(1))
