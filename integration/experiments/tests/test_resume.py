"""A run that continues another one: it makes the loads that are missing, and none twice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.plan import Group
from experiments.resume import resumed
from harness.host.artifacts import Missing
from harness.lab.measure import Run

COMMIT, SEED = "abc", 1
FIRST = Group("today", "geo", ("cnn",), ("http", "https"), ("direct", "longhaul-edge"), 1)
SECOND = replace(FIRST, first_repeat=2)
SPECIAL = Group("mobility", "rural-lte", (), (), (), 3, special="mobility")


def write(folder: Path, name: str, runs: list[Run], **other: object) -> None:
    """Writes the results of a sitting."""
    text = {"commit": COMMIT, "beds_left": 0, "errors": [], "absent": {}, "weights": {}, "details": {}, "ended": []}
    (folder / f"{name}.json").write_text(json.dumps(text | other | {"runs": [run.as_dict() for run in runs]}))


def left(folder: Path, *groups: Group) -> tuple[list[Group], list[Run]]:
    """Returns the groups that are left, and the loads of the others."""
    names = dict.fromkeys(group.experiment for group in groups)
    rest, outcome = resumed(folder, names, list(groups), SEED, COMMIT)
    return rest, outcome.runs


def test_without_results_everything_is_left(tmp_path: Path) -> None:
    assert left(tmp_path, FIRST, SPECIAL) == ([FIRST, SPECIAL], [])


def test_a_bed_with_all_of_its_loads_is_not_run_again(tmp_path: Path) -> None:
    whole, part = list(FIRST.turns(SEED)), list(SECOND.turns(SEED))[:-1]
    write(tmp_path, "today", whole + part, beds_left=1, errors=["today on geo (cnn): it failed"])
    assert left(tmp_path, FIRST, SECOND) == ([SECOND], whole)


def test_a_load_that_failed_is_a_result(tmp_path: Path) -> None:
    failed = [replace(run, problem="the page did not load") for run in FIRST.turns(SEED)]
    write(tmp_path, "today", failed)
    assert left(tmp_path, FIRST) == ([], failed)


def test_loads_of_an_absent_peer_are_not_missing(tmp_path: Path) -> None:
    runs = [run for run in FIRST.turns(SEED) if run.contender == "direct"]
    write(tmp_path, "today", runs)
    assert left(tmp_path, FIRST) == ([FIRST], [])
    write(tmp_path, "today", runs, absent={"longhaul-edge": "not built"})
    assert left(tmp_path, FIRST) == ([], runs)


def test_a_bed_of_a_special_experiment_is_run_again_unless_it_ended(tmp_path: Path) -> None:
    write(tmp_path, "mobility", [], beds_left=1, errors=["it failed"])
    assert left(tmp_path, SPECIAL) == ([SPECIAL], [])
    write(tmp_path, "mobility", [], ended=[SPECIAL.bed], details={"a": 1, "figures": {"b": 2.0}})
    rest, outcome = resumed(tmp_path, ["mobility"], [SPECIAL], SEED, COMMIT)
    assert (rest, outcome.details) == ([], {"mobility": {"a": 1, "figures": {"b": 2.0}}})


def test_beds_of_one_special_experiment_are_kept_one_by_one(tmp_path: Path) -> None:
    others = replace(SPECIAL, scenario="b"), replace(SPECIAL, link_name="geo")
    write(tmp_path, "mobility", [], beds_left=2, ended=[SPECIAL.bed], details={"loads": [1]})
    rest, outcome = resumed(tmp_path, ["mobility"], [SPECIAL, *others], SEED, COMMIT)
    assert (rest, outcome.details) == ([*others], {"mobility": {"loads": [1]}})
    assert outcome.ended == {"mobility": [SPECIAL.bed]}


def test_results_of_another_commit_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "today", [], commit="def")
    with pytest.raises(Missing, match="of commit def"):
        left(tmp_path, FIRST)
