"""The page of goals: it matches the kept results, judges both ways, and wants a sentence for each miss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.host.scripts import load_tool
from harness.results.figures import at_least, at_most, write

goals = load_tool("goals")

ORIGIN = {"commit": "0123abc", "date": "2026-11-23", "machine": "2 cores"}


def bench(folder: Path, figures: dict[str, float | None], **more: Any) -> dict[str, Any]:
    """Returns the results of a bench, as it writes them."""
    path = folder / "bench.json"
    write(path, figures, [at_least("rate", 0.9), at_most("lost", 0)], **ORIGIN, **more)
    return json.loads(path.read_text())


def experiment(value: float) -> dict[str, Any]:
    case = {"what": "never slower", "link": "geo", "page": "cnn", "scheme": "http", "contender": "edge", "bound": 1.02}
    figures = {"geo_cnn_http_edge_ratio_to_direct": value, "geo_cnn_http_edge_first_byte_ms": 700}
    origin = {**ORIGIN, "when": "2026-11-23 10:00 UTC", "repeats": 3}
    return {**origin, "figures": figures, "goals": [{**case, "value": value}]}


def test_the_page_is_that_of_the_kept_results() -> None:
    benches, experiments = goals.read(goals.BENCHES), goals.read(goals.EXPERIMENTS)
    why = goals.tomllib.loads(goals.MISSES.read_text())
    assert goals.page(benches, experiments, why) == goals.PAGE.read_text()
    assert goals.unexplained(benches, experiments, why) == []


def test_a_goal_is_met_on_its_side_of_the_bound_and_has_no_verdict_without_a_figure(tmp_path: Path) -> None:
    def verdicts(figures: dict[str, float | None]) -> list[bool | None]:
        return [line.met for line in goals.of_bench(bench(tmp_path, figures))]

    assert verdicts({"rate": 0.9, "lost": 0}) == [True, True]
    assert verdicts({"rate": 0.89, "lost": 1}) == [False, False]
    assert verdicts({"rate": None}) == [None, None]


def test_a_missed_goal_of_an_experiment_names_its_page() -> None:
    (line,) = goals.of_experiment(experiment(1.5))
    assert (line.met, line.measured) == (False, "0 of 1 met; missed: geo cnn http edge 1.50")
    (line,) = goals.of_experiment(experiment(1.0))
    assert (line.met, line.measured) == (True, "1 of 1 met")


def test_each_miss_needs_a_sentence_and_each_sentence_a_miss(tmp_path: Path) -> None:
    slow = {"edge": bench(tmp_path, {"rate": 0.5, "lost": 0})}
    assert "why edge misses `rate`" in goals.unexplained(slow, {}, {})[0]
    why = {"edge": {"rate": "V8 takes the rest."}}
    assert goals.unexplained(slow, {}, why) == []
    assert "**missed.** V8 takes the rest." in goals.page(slow, {}, why)
    assert goals.others(slow["edge"]) == []
    slow["edge"]["figures"] |= {"rate_of_nginx": 2.5}
    assert "\n| `rate_of_nginx` | | 2.5 | |\n" in goals.page(slow, {}, why)
    fast = {"edge": bench(tmp_path, {"rate": 0.95, "lost": 0})}
    assert "delete its sentence" in goals.unexplained(fast, {}, why)[0]


def test_the_page_says_how_many_versions_its_results_are_of(tmp_path: Path) -> None:
    one = {"edge": bench(tmp_path, {"rate": 1, "lost": 0})}
    assert "All results are of commit `0123abc`." in goals.page(one, {}, {})
    two = {"today": experiment(1.0) | {"commit": "4567def"}}
    assert "The results are of 2 commits: `0123abc`, `4567def`." in goals.page(one, two, {})


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("BENCHES", "EXPERIMENTS"):
        monkeypatch.setattr(goals, name, tmp_path / "results" / name.lower())
    return tmp_path / "results"


def test_results_are_kept_without_their_details_and_a_short_run_replaces_no_whole_one(
    tmp_path: Path, kept: Path
) -> None:
    source = tmp_path / "target/bench/edge.json"
    source.parent.mkdir(parents=True)

    def measured(rate: float, *, quick: bool) -> float:
        source.write_text(json.dumps(bench(tmp_path, {"rate": rate}, quick=quick, per_page={"cnn": 1})))
        goals.collect(tmp_path / "target")
        run = json.loads((kept / "benches/edge.json").read_text())
        assert "per_page" not in run
        return run["figures"]["rate"]

    assert measured(0.1, quick=True) == 0.1
    assert measured(0.2, quick=False) == 0.2
    assert measured(0.3, quick=True) == 0.2


def test_results_without_their_origin_and_those_of_some_parts_are_left_out(tmp_path: Path, kept: Path) -> None:
    source = tmp_path / "target/bench/edge.json"
    write(source, {"rate": 1.0}, [at_least("rate", 0.9)])
    goals.collect(tmp_path / "target")
    write(source, {"rate": 1.0}, [at_least("rate", 0.9)], **ORIGIN, parts=["rate"])
    goals.collect(tmp_path / "target")
    assert not kept.exists()
    (tmp_path / "target/experiments").mkdir()
    (tmp_path / "target/experiments/cells.json").write_text(json.dumps(experiment(1.0)))
    goals.collect(tmp_path / "target")
    run = json.loads((kept / "experiments/cells.json").read_text())
    assert run["date"] == "2026-11-23"
    assert run["figures"] == {"geo_cnn_http_edge_ratio_to_direct": 1.0}


def test_an_experiment_whose_beds_stand_alone_is_kept_before_all_have_run(tmp_path: Path, kept: Path) -> None:
    (tmp_path / "target/experiments").mkdir(parents=True)
    part = experiment(1.0) | {"beds_left": 3}
    (tmp_path / "target/experiments/cells.json").write_text(json.dumps(part))
    alone = {"stands_alone": True, "note": "other work ran", "details": {"cells": [{"way": "pair"}]}}
    (tmp_path / "target/experiments/field.json").write_text(json.dumps(part | alone))
    goals.collect(tmp_path / "target")
    runs = goals.read(kept / "experiments")
    assert list(runs) == ["field"]
    assert (runs["field"]["beds_left"], runs["field"]["cells"]) == (3, [{"way": "pair"}])
    assert "Machine: 2 cores, other work ran." in goals.page({}, runs, {})


def test_an_experiment_without_goals_is_kept_with_its_own_figures_and_has_no_place_among_goals(
    tmp_path: Path, kept: Path
) -> None:
    (tmp_path / "target/experiments").mkdir(parents=True)
    counted = {"hundred_pages_direct_connections": 1059}
    run = experiment(1.0) | {"goals": [], "figures": counted, "details": {"figures": counted}}
    (tmp_path / "target/experiments/connections.json").write_text(json.dumps(run))
    goals.collect(tmp_path / "target")
    runs = goals.read(kept / "experiments")
    assert (runs["connections"]["own"], runs["connections"]["figures"]) == (counted, {})
    assert "connections" not in goals.page({}, runs, {})
