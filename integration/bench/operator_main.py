"""`make bench ONLY=operator`: an operator's evening. Quick starts typed on machines with systemd, staged faults, the
commands that look for faults, an hour without any, and a restart under load. Writes target/bench/operator.json.

QUICK=1 waits less for each fault and watches minutes instead of an hour. `ARGS=--part=faults` runs one part, and
`ARGS='--part=faults --only=MTU'` some faults. Needs root, mmdebstrap and apt's archive, once.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import operator_bed, operator_calm, operator_commands, operator_published, operator_quick, operator_staged
from harness.host.artifacts import Missing, need_commands, need_root, scratch
from harness.host.usage import description
from harness.machines import machine as machines
from harness.machines.trees import DEBIAN, KINDS
from harness.net import namespaces
from harness.results.figures import at_least, at_most, verdicts, write

TARGETS = [
    at_least("faults_named_in_10s", 22),
    at_least("named_cure_mends", 1),
    at_most("false_alarms", 0),
    at_most("check_errors_on_own_run", 0),
    at_most("quick_start_machine_s", 25),
    at_most("netcheck_s", 20),
    at_most("bugreport_secrets", 0),
    at_most("restart_reset_clients", 0),
]
BEDS = {operator_quick.PAIR: operator_bed.pair_bed, operator_quick.ONE_BOX: operator_bed.one_box_bed}
Figures = dict[str, float | None]


def quick_starts(folder: Path, deb: Path, options: argparse.Namespace) -> tuple[Figures, Any]:  # noqa: ARG001
    """Both quick starts on both kinds of root."""
    seconds: dict[str, float | None] = {}
    lines: dict[str, list[str]] = {}
    wrong: list[str] = []
    for kind in KINDS.values():
        for page, bed_of in (
            (operator_quick.PAIR, operator_bed.pair_bed),
            (operator_quick.ONE_BOX, operator_bed.one_box_bed),
        ):
            name = f"{page.removeprefix('quick-start-').removesuffix('.md')}, {kind.name}"
            place = folder / name.replace(", ", "-")
            place.mkdir()
            with bed_of(place, kind, deb) as bed:
                walked = operator_quick.walk(bed, page, kind)
                if not walked.wrong:
                    running = [one for name, one in bed.machines.items() if name != "desk"]
                    wrong += [line for one in running for line in operator_commands.own_run(one)]
            seconds[name] = walked.machine_s
            lines[name] = list(walked.lines())
            shown = "failed" if walked.machine_s is None else f"{walked.machine_s:.1f} s"
            print(f"{name}: {shown}, copies {walked.copies_s:.1f} s", flush=True)
            print("".join(f"    {line}\n" for line in lines[name]), end="", flush=True)
    every = list(seconds.values())
    worst = None if None in every else max(one for one in every if one is not None)
    figures: Figures = {
        "quick_start_machine_s": worst,
        "quick_starts_failed": every.count(None),
        "check_errors_on_own_run": len(wrong),
    }
    return figures, {"seconds": seconds, "commands": lines, "own_run": wrong}


def calm(folder: Path, deb: Path, options: argparse.Namespace) -> tuple[Figures, Any]:
    """A pair without a fault: its commands, and an hour of its alarms."""
    with operator_bed.pair_bed(folder, DEBIAN, deb) as bed:
        installed(bed, operator_quick.PAIR)
        ends = [bed.machine(name) for name in ("ship", "ground")]
        checks = [operator_commands.netcheck(end) for end in ends]
        reports = [operator_commands.bugreport(bed, end) for end in ends]
        seconds = options.calm or (operator_calm.QUICK_S if options.quick else operator_calm.HOUR_S)
        alarms = []
        for line in operator_calm.alarms(bed, seconds):
            print(f"    {line}", flush=True)
            alarms.append(line)
    took = [one for one, _ in checks]
    found = [one for one, _ in reports]
    figures: Figures = {
        "netcheck_s": None if None in took else max(one for one in took if one is not None),
        "bugreport_secrets": None if None in found else sum(len(one) for one in found if one is not None),
        "false_alarms": len(alarms),
    }
    return figures, {"alarms": alarms, "watched_s": seconds, "secrets": found, "netcheck": [said for _, said in checks]}


def restart(folder: Path, deb: Path, options: argparse.Namespace) -> tuple[Figures, Any]:  # noqa: ARG001
    """One box, restarted in the middle of a crowd."""
    with operator_bed.one_box_bed(folder, DEBIAN, deb) as bed:
        installed(bed, operator_quick.ONE_BOX)
        ends = operator_calm.restart_under_load(bed)
    return {"restart_reset_clients": operator_calm.broken(ends), "restart_clients": sum(ends.values())}, ends


def installed(bed: operator_bed.Bed, page: str) -> None:
    """Follows a quick start to its end."""
    walked = operator_quick.walk(bed, page, DEBIAN)
    if walked.wrong:
        raise RuntimeError(walked.wrong)


def faults(folder: Path, deb: Path, options: argparse.Namespace) -> tuple[Figures, Any]:
    """Every staged fault."""
    outcomes = operator_staged.stage_all(folder, deb, quick=options.quick, only=options.only or ())
    print(operator_staged.rows(outcomes), flush=True)
    return operator_staged.figures(outcomes), operator_staged.details(outcomes)


PARTS: dict[str, Callable[[Path, Path, argparse.Namespace], tuple[Figures, Any]]] = {
    "quick-starts": quick_starts,
    "faults": faults,
    "calm": calm,
    "restart": restart,
}


def main() -> int:
    """Measures and prints all parts."""
    parser = argparse.ArgumentParser(prog="make bench ONLY=operator", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append", help="this part alone; may be repeated")
    parser.add_argument("--only", action="append", metavar="WORDS", help="the faults whose names have these words")
    parser.add_argument("--calm", type=int, metavar="SECONDS", help="the time without a fault, instead of an hour")
    parser.add_argument("--publish", action="store_true", help="only write the last results into FAULTS.md")
    parser.add_argument("--deb", type=Path, help="a package to install, instead of one of this tree")
    options = parser.parse_args()
    options.quick = bool(os.environ.get("QUICK"))
    # A run that is ended leaves no machine behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    results = scratch("bench") / "operator.json"
    if options.publish:
        operator_published.publish(results)
        return 0
    try:
        need_root()
        need_commands("mmdebstrap", "nft", "nsenter", "unshare", "mkfs.ext4", "cc", "openssl", "curl")
        deb = options.deb or operator_bed.package()
    except Missing as reason:
        print(f"skipped: {reason}")
        write(results, {}, skipped=str(reason))
        return 0
    machine = description()
    machines.sweep()
    namespaces.sweep()
    figures: Figures = {}
    details: dict[str, Any] = {}
    for name in options.part or PARTS:
        began_s = time.monotonic()
        print(f"-- {name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="longhaul-operator-") as folder:
            Path(folder).chmod(0o755)
            found, details[name] = PARTS[name](Path(folder), deb, options)
        figures |= found
        print(f"-- {name}, {time.monotonic() - began_s:.0f} s: {found}", flush=True)
    print(f"\n{verdicts(figures, TARGETS)}\n")
    # The results of one part would replace those of all.
    if options.part:
        results = results.with_stem(f"operator-{'-'.join(options.part)}")
    write(results, figures, TARGETS, machine=machine, quick=options.quick, details=details)
    print(f"written to {results}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
