"""The command: which experiments, how many repeats, where the results go."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.host.artifacts import Missing, built, need_commands, need_root, scratch
from harness.lab import watches
from harness.lab.ideal import Weight
from harness.lab.measure import Run, run_from
from harness.net import namespaces
from harness.results.provenance import built_commit, machine_class

from .catalogue import APART, EXPERIMENTS, QUICK_GROUPS, Experiment
from .front_page import FRONT_PAGE
from .goals import goals, stated
from .plan import matching
from .results import Results
from .resume import resumed
from .runner import Outcome, Runner, clock, expected_total_ms, watches_of

REPEATS = 3
QUICK = Experiment(
    "quick", "The quick subset", "What CI runs: every part of the instrument, a few loads.", lambda _: QUICK_GROUPS
)


def main(arguments: list[str]) -> int:
    """Returns 0 when every load was made, 1 when some could not be made, and 2 for an unknown name."""
    options = _parse(arguments)
    wanted = {"quick": QUICK} if options.quick and not options.only else EXPERIMENTS
    if options.only:
        known = EXPERIMENTS | APART | {FRONT_PAGE.name: FRONT_PAGE}
        unknown = [name for name in options.only.split(",") if name not in known]
        if unknown:
            print(f"no experiment is called {', '.join(unknown)}; there are:", file=sys.stderr)
            for one in known.values():
                print(f"  make experiments ONLY={one.name:<12} {one.title}", file=sys.stderr)
            return 2
        wanted = {name: known[name] for name in options.only.split(",")}
    repeats = 1 if options.quick else options.repeats
    out = options.out or scratch("experiments")
    out.mkdir(parents=True, exist_ok=True)
    if options.report:
        return _report(out)
    try:
        need_root()
        need_commands("ip", "nft", "nsenter", "unshare", "sysctl", "curl", "chromium", "certutil")
        for name in ("longhaul", "coredns", "url_rewrite.wasm", "envoy", "origins", "longhaul-link"):
            built(name)
    except Missing as reason:
        print(f"make experiments: {reason}", file=sys.stderr)
        return 1
    namespaces.sweep()
    spare = watches.free()
    every = [group for one in wanted.values() for group in one.groups(repeats)]
    if not matching(every, options.beds):
        beds = "\n  ".join(sorted(one.bed for one in every))
        print(f"no bed is called {options.beds}; there are:\n  {beds}", file=sys.stderr)
        return 2
    before = Outcome()
    if options.resume:
        try:
            every, before = resumed(out, wanted, every, options.seed, built_commit())
        except Missing as reason:
            print(f"make experiments: {reason}", file=sys.stderr)
            return 1
    groups = matching(every, options.beds)
    left_out = Counter(group.experiment for group in every) - Counter(group.experiment for group in groups)
    print(_announcement(wanted, groups, repeats, options.seed), flush=True)
    if options.estimate:
        return 0
    if (needed := max(map(watches_of, groups), default=0)) > spare:
        print(f"make experiments: {watches.too_few(needed, spare)}", file=sys.stderr)
        return 1
    kept: list[str] = []

    def keep(name: str, beds_left: int) -> None:
        left = beds_left + left_out[name]
        origin = {"beds_left": left, "repeats": repeats, "seed": options.seed, "note": options.note}
        _write(out / f"{name}.json", wanted[name], runner.outcome, origin)
        if not left:
            kept.append(name)

    runner = Runner(groups, options.seed, spare, keep, before)
    try:
        outcome = runner.run()
    except KeyboardInterrupt:
        lost = [name for name in dict.fromkeys(group.experiment for group in groups) if name not in kept]
        print(
            f"stopped; run to their end: {', '.join(kept) or 'none'}; not: {', '.join(lost)} (--resume runs the rest)",
            file=sys.stderr,
        )
        _report(out)
        return 130
    for name, reason in outcome.absent.items():
        print(f"{name} took no part: {reason}")
    _print_failures(outcome.runs)
    _report(out)
    return 1 if outcome.errors else 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make experiments", description="The papers' experiments, and today's.")
    parser.add_argument("--only", default="", help="names of experiments, with commas between")
    parser.add_argument("--beds", default="*", help="only the beds of this name, such as 'field geo users-*' (*)")
    parser.add_argument("--quick", action="store_true", help="a few loads of everything, once")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"loads of each kind ({REPEATS})")
    parser.add_argument("--seed", type=int, default=1, help="of the order of turns and of the links' chance (1)")
    parser.add_argument("--out", type=Path, help="folder for results (target/experiments)")
    parser.add_argument("--resume", action="store_true", help="only run the beds that the results in the folder lack")
    parser.add_argument("--note", default="", help="words about the machine, which stand beside the results")
    parser.add_argument("--estimate", action="store_true", help="only say how long it would take")
    parser.add_argument("--report", action="store_true", help="only write the report, from the results that are there")
    return parser.parse_args(arguments)


def _announcement(wanted: dict[str, Experiment], groups: list[Any], repeats: int, seed: int) -> str:
    loads = sum(sum(1 for _ in group.turns(seed)) for group in groups)
    lines = [f"{loads} loads in {len(groups)} beds, {repeats} of each kind, seed {seed}:"]
    for name, one in wanted.items():
        own = [group for group in groups if group.experiment == name]
        lines.append(f"  {name:<12} about {clock(expected_total_ms(own) / 1000):>6}  {one.title}")
    lines.append(f"  {'all':<12} about {clock(expected_total_ms(groups) / 1000):>6}")
    return "\n".join(lines)


def _write(path: Path, experiment: Experiment, outcome: Outcome, origin: dict[str, Any]) -> None:
    """Writes one experiment: its figures, for comparisons between runs, and the data behind them. `beds_left` of
    `origin` have not run yet."""
    name = experiment.name
    runs = [run for run in outcome.runs if run.experiment == name]
    pages = {run.page for run in runs}
    weights = {page: weight for page, weight in outcome.weights.items() if page in pages}
    results = Results(runs, weights)
    details = outcome.details.get(name, {})
    if experiment.summed:
        details = experiment.summed(details)
    own = details.get("figures", {})
    text = {
        "figures": {**results.figures(), **own},
        "details": details,
        "goals": [*(asdict(goal) for goal in (*goals(results), *stated(own))), *details.get("goals", [])],
        "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "commit": built_commit(),
        "machine": machine_class(),
        **origin,
        "ended": outcome.ended.get(name, []),
        "stands_alone": experiment.summed is not None,
        "absent": outcome.absent,
        "errors": [error for error in outcome.errors if error.startswith(name)],
        "weights": {page: asdict(weight) for page, weight in weights.items()},
        "runs": [run.as_dict() for run in runs],
    }
    path.write_text(json.dumps(text, indent=1) + "\n")


def _report(out: Path) -> int:
    from .report import write_report

    found = {}
    for name in [*EXPERIMENTS, *APART, "quick"]:
        path = out / f"{name}.json"
        if path.exists():
            text = json.loads(path.read_text())
            weights = {page: Weight(**weight) for page, weight in text["weights"].items()}
            found[name] = (text, Results([run_from(run) for run in text["runs"]], weights))
    path = write_report(out / "report.html", found)
    print(f"report: {path}")
    return 0


def _print_failures(runs: list[Run]) -> None:
    for run in runs:
        if not run.complete:
            print(f"FAILED: {run.experiment} {run.link} {run.page} {run.scheme} {run.contender}: {run.problem}")
