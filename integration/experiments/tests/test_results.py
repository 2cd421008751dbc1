"""The results of loads: bounds, medians and goals. No result includes an incomplete load."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from experiments.catalogue import EXPERIMENTS, QUICK_GROUPS
from experiments.goals import STATED, goals, stated, visits
from experiments.lane import Message
from experiments.plan import Group
from experiments.report import write_report
from experiments.results import Results, spread
from experiments.runner import Runner, expected_total_ms
from harness.lab.contenders import CONTENDERS
from harness.lab.ideal import Weight, bound
from harness.lab.links import CAPACITY, link
from harness.lab.measure import Run, run_from
from harness.lab.tables import page_tables

WEIGHTS = {"cnn": Weight(197_000, 150_000)}


def load(contender: str, load_ms: float, **more: Any) -> Run:
    """Returns one load of the CNN page over the satellite."""
    return replace(Run("today", "geo", "cnn", "http", contender, 1, load_ms=load_ms), **more)


def test_the_ideal_is_three_round_trips_and_the_bytes_at_the_rate_that_tcp_leaves() -> None:
    least = bound(Weight(1_448_000, 724_000), link("geo"))
    transfer_ms = 1_500_000 * 8 / 20_000
    assert least.ideal_ms == pytest.approx(1800 + transfer_ms)
    assert least.squeezed_ideal_ms == pytest.approx(1800 + transfer_ms / 2)
    assert least.floor_ms == pytest.approx(600 + transfer_ms / 2)


def test_an_incomplete_load_is_counted_and_enters_no_median() -> None:
    runs = [load("direct", 6000), load("longhaul-edge", 4000), load("longhaul-edge", 10, problem="3 objects absent")]
    results = Results(runs, WEIGHTS)
    edge = results.cell("geo", "cnn", "http", "longhaul-edge")
    assert edge
    assert edge.load_ms
    assert edge.load_ms.median == 4000
    figures = results.figures()
    assert figures["geo_cnn_http_longhaul_edge_failures"] == 1
    assert figures["geo_cnn_http_longhaul_edge_loads"] == 2
    assert figures["geo_cnn_http_longhaul_edge_ratio_to_direct"] == pytest.approx(4000 / 6000, abs=1e-4)


def test_a_contender_whose_every_load_failed_has_no_time_at_all() -> None:
    results = Results([load("direct", 6000), load("longhaul-edge", 0, problem="no load event")], WEIGHTS)
    figures = results.figures()
    assert figures["geo_cnn_http_longhaul_edge_failures"] == 1
    assert "geo_cnn_http_longhaul_edge_load_ms" not in figures
    assert not goals(results)


def test_quartiles_of_few_loads_are_the_least_and_the_most() -> None:
    assert spread([]) is None
    both = spread([5.0, 7.0])
    assert both
    assert (both.low, both.median, both.high) == (5.0, 6.0, 7.0)
    five = spread([1.0, 2.0, 3.0, 4.0, 50.0])
    assert five
    assert (five.low, five.median, five.high) == (2.0, 3.0, 4.0)


def test_goals_are_judged_both_ways() -> None:
    slow = goals(Results([load("direct", 6000), load("longhaul-edge", 6500)], WEIGHTS))
    assert {(goal.what, goal.met) for goal in slow} == {
        ("never slower than direct", False), ("load time to direct", False)
    }  # fmt: skip
    fast = goals(Results([load("direct", 6000), load("longhaul-edge", 4000)], WEIGHTS))
    assert fast
    assert all(goal.met for goal in fast)


def test_a_pair_of_two_days_is_judged_beside_direct_and_beside_the_best_peer() -> None:
    first, second = "longhaul-pair-first-visit", "longhaul-pair-second-day"
    found = visits({
        ("geo", "cnn", "https", first): 0.5,
        ("geo", "cnn", "https", second): 0.47,
        ("rural-lte", "median-2025", "http", first): 0.9,
        ("rural-lte", "median-2025", "http", "squid-explicit"): 0.8,
        ("rural-lte", "median-2025", "http", "envoy-pair"): 1.1,
        ("leo", "median-2025", "http", first): 2.0,
    })  # fmt: skip
    assert [(goal.what, goal.link, goal.contender, goal.value, goal.met) for goal in found] == [
        ("load time to direct, both days", "geo", first, 0.5, False),
        ("load time to direct, both days", "geo", second, 0.47, True),
        ("load time to best peer", "rural-lte", first, 1.125, False),
    ]


def test_an_experiments_own_figures_are_judged_both_ways_and_their_pages_take_part() -> None:
    name, *_, most = STATED[0]
    assert [goal.met for value in (most, most + 0.01) for goal in stated({name: value})] == [True, False]
    assert stated({"pages_loaded": 7}) == []
    (group,) = [one for one in EXPERIMENTS["one-flight"].groups(1) if one.link_name == "geo"]
    assert {(page, contender) for _, _, page, contender, _ in STATED} <= {
        (page, contender) for page in group.pages for contender in group.contenders
    }


@pytest.mark.parametrize(("cache", "of_page"), [("cold", ""), ("second", " of a second page")])
def test_smaller_bodies_are_judged_against_the_pair_with_gzip_alone(cache: str, of_page: str) -> None:
    def judged(load_ms: float, bytes_down: int) -> dict[str, bool]:
        ours = {"longhaul-pair-default": (load_ms, bytes_down), "longhaul-pair-gzip": (20_000, 100_000)}
        runs = [
            replace(load(name, time), link="cdma-average", cache=cache, bytes_down=carried)
            for name, (time, carried) in ours.items()
        ]
        return {goal.what: goal.met for goal in goals(Results(runs, WEIGHTS))}

    assert judged(12_900, 54_000) == {
        f"bytes{of_page} to the pair with gzip alone": True, f"load time{of_page} to the pair with gzip alone": True,
    }  # fmt: skip
    assert not any(judged(15_000, 70_000).values())


def test_every_experiment_names_pages_links_and_contenders_that_exist() -> None:
    known = {*CONTENDERS, "longhaul-pair"}
    for group in [*(group for one in EXPERIMENTS.values() for group in one.groups(3)), *QUICK_GROUPS]:
        assert set(group.pages) <= set(page_tables()), group
        assert set(group.contenders) <= known, group
        assert 1 <= group.link.weight <= CAPACITY


def test_the_full_set_fits_into_105_minutes_and_today_into_30() -> None:
    everything = [group for one in EXPERIMENTS.values() for group in one.groups(3)]
    assert expected_total_ms(everything) < 105 * 60_000
    assert expected_total_ms(EXPERIMENTS["today"].groups(3)) < 30 * 60_000


def test_turns_alternate_and_their_order_is_the_seeds() -> None:
    group = EXPERIMENTS["today"].groups(3)[0]
    turns = [(turn.contender, turn.repeat) for turn in group.turns(7)]
    assert turns == [(turn.contender, turn.repeat) for turn in group.turns(7)]
    assert turns != [(turn.contender, turn.repeat) for turn in group.turns(8)]
    first_round = [contender for contender, repeat in turns if repeat == 1]
    assert set(first_round) == set(group.contenders)


@dataclass
class EndedLane:
    """A lane that has sent all its messages."""

    exitcode: int = 0

    def join(self, _timeout_s: float = 0) -> None: ...

    def terminate(self) -> None: ...


def test_results_are_kept_after_each_bed_also_if_another_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    heavy = Group("saved", "geo", ("cnn",), ("http",), ("direct",), 3)
    light = [Group(name, "geo", ("cnn",), ("http",), ("direct",), 1) for name in ("saved", "cells", "today")]
    kept: list[tuple[str, int]] = []

    def keep(name: str, beds_left: int) -> None:
        kept.append((name, beds_left))

    def ends_at_once(runner: Runner, number: int) -> None:
        if number == 3:
            raise KeyboardInterrupt
        runner._lanes[number] = EndedLane()
        runner._messages.put(Message(number, done=True))

    monkeypatch.setattr(Runner, "_start", ends_at_once)
    monkeypatch.setattr(Runner, "_fits", lambda runner, _: not runner._lanes)
    with pytest.raises(KeyboardInterrupt):
        Runner([heavy, *light], 1, 0, keep).run()
    assert kept == [("saved", 1), ("saved", 0), ("cells", 0)]


def test_a_run_survives_json_and_the_report_names_what_failed(tmp_path: Path) -> None:
    runs = [load("direct", 6000), load("longhaul-edge", 6500), load("longhaul-edge", 0, problem="7 objects absent")]
    assert [run_from(run.as_dict()) for run in runs] == runs
    results = Results(runs, WEIGHTS)
    text = {"when": "now", "repeats": 1, "seed": 1, "absent": {"squid-explicit": "not installed"}, "errors": []}
    report = write_report(tmp_path / "report.html", {"today": (text, results)}).read_text()
    assert "1 of 2" in report
    assert "squid-explicit took no part" in report
    assert "Missed goals: where the time went" in report
    assert "<script" not in report
    assert 'src="http' not in report
