"""The results of earlier sittings, so that a run may take several."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.host.artifacts import Missing
from harness.lab.ideal import Weight
from harness.lab.measure import Run, run_from

from .plan import Group
from .runner import Outcome

Load = tuple[str, str, str, str, int]


def resumed(
    folder: Path, names: Iterable[str], groups: list[Group], seed: int, commit: str
) -> tuple[list[Group], Outcome]:
    """Returns the groups that are left to run, and the results of the others.

    The results of one run are of one commit. So `Missing` is raised for a file of another one.
    """
    outcome, done = Outcome(), set[int]()
    for name in names:
        path = folder / f"{name}.json"
        if not path.exists():
            continue
        text = json.loads(path.read_text())
        if text["commit"] != commit:
            raise Missing(f"{path} is of commit {text['commit']}, and the programs are of {commit}: omit --resume")
        own = {number: group for number, group in enumerate(groups) if group.experiment == name}
        done |= _add(outcome, name, text, own, seed)
    return [group for number, group in enumerate(groups) if number not in done], outcome


def _add(outcome: Outcome, name: str, text: dict[str, Any], own: dict[int, Group], seed: int) -> set[int]:
    """Adds the results of the groups that an earlier sitting has ended. Returns the numbers of these groups."""
    runs = [run_from(run) for run in text["runs"]]
    made = {_load(run) for run in runs}
    ended = set(text["ended"])
    done, counted = set[int](), set[Load]()
    for number, group in own.items():
        loads = {_load(turn) for turn in group.turns(seed) if turn.contender not in text["absent"]}
        if group.bed in ended if group.special else loads <= made:
            done.add(number)
            counted |= loads
    outcome.runs += [run for run in runs if _load(run) in counted]
    outcome.weights |= {page: Weight(**weight) for page, weight in text["weights"].items()}
    outcome.absent |= text["absent"]
    if ended:
        outcome.details[name] = text["details"]
        outcome.ended[name] = text["ended"]
    return done


def _load(run: Run) -> Load:
    return run.link, run.page, run.scheme, run.contender, run.repeat
