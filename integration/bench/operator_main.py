"""`make bench ONLY=operator`: an operator's evening. Quick starts typed on machines with systemd, staged faults, the
commands that look for faults, an hour without any, and a restart under load. Writes target/bench/operator.json.

QUICK=1 waits less for each fault and watches minutes instead of an hour. `ARGS=--part=faults` runs one part, and
`ARGS='--part=faults --only=MTU'` some faults. Needs root, mmdebstrap and apt's archive, once.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import (
    operator_bed,
    operator_calm,
    operator_commands,
    operator_published,
    operator_quick,
    operator_staged,
    parts,
)
from harness.host.artifacts import need_commands, need_root
from harness.machines import machine as machines
from harness.machines.trees import DEBIAN, KINDS
from harness.net import namespaces
from harness.results.figures import at_least, at_most

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


def quick_starts(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Both quick starts on both kinds of root."""
    seconds: dict[str, float | None] = {}
    lines: dict[str, list[str]] = {}
    wrong: list[str] = []
    for kind in KINDS.values():
        for page, bed_of in BEDS.items():
            name = f"{page.removeprefix('quick-start-').removesuffix('.md')}, {kind.name}"
            place = folder / name.replace(", ", "-")
            place.mkdir()
            with bed_of(place, kind, options.deb) as bed:
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
    figures: parts.Figures = {
        "quick_start_machine_s": worst,
        "quick_starts_failed": every.count(None),
        "check_errors_on_own_run": len(wrong),
    }
    return figures, {"seconds": seconds, "commands": lines, "own_run": wrong}


def calm(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """A pair without a fault: its commands, and an hour of its alarms."""
    with operator_bed.pair_bed(folder, DEBIAN, options.deb) as bed:
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
    figures: parts.Figures = {
        "netcheck_s": None if None in took else max(one for one in took if one is not None),
        "bugreport_secrets": None if None in found else sum(len(one) for one in found if one is not None),
        "false_alarms": len(alarms),
    }
    return figures, {"alarms": alarms, "watched_s": seconds, "secrets": found, "netcheck": [said for _, said in checks]}


def restart(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """One box, restarted in the middle of a crowd."""
    with operator_bed.one_box_bed(folder, DEBIAN, options.deb) as bed:
        installed(bed, operator_quick.ONE_BOX)
        ends = operator_calm.restart_under_load(bed)
    return {"restart_reset_clients": operator_calm.broken(ends), "restart_clients": sum(ends.values())}, ends


def installed(bed: operator_bed.Bed, page: str) -> None:
    """Follows a quick start to its end."""
    walked = operator_quick.walk(bed, page, DEBIAN)
    if walked.wrong:
        raise RuntimeError(walked.wrong)


def faults(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Every staged fault."""
    outcomes = operator_staged.stage_all(folder, options.deb, quick=options.quick, only=options.only or ())
    print(operator_staged.rows(outcomes), flush=True)
    return operator_staged.figures(outcomes), operator_staged.details(outcomes)


PARTS: dict[str, parts.Part] = {
    "quick-starts": quick_starts,
    "faults": faults,
    "calm": calm,
    "restart": restart,
}


def main() -> int:
    """Measures and prints all parts, or publishes the last results."""
    parser = parts.parser("operator", __doc__, PARTS)
    parser.add_argument("--only", action="append", metavar="WORDS", help="the faults whose names have these words")
    parser.add_argument("--calm", type=int, metavar="SECONDS", help="the time without a fault, instead of an hour")
    parser.add_argument("--publish", action="store_true", help="only write the last results into FAULTS.md")
    parser.add_argument("--deb", type=Path, help="a package to install, instead of one of this tree")
    options = parser.parse_args()
    if options.publish:
        operator_published.publish(parts.results_of("operator", options.part))
        return 0

    def ready() -> None:
        need_root()
        need_commands("mmdebstrap", "nft", "nsenter", "unshare", "mkfs.ext4", "cc", "openssl", "curl")
        options.deb = options.deb or operator_bed.package()
        machines.sweep()
        namespaces.sweep()

    return parts.measure("operator", PARTS, TARGETS, options, ready)


if __name__ == "__main__":
    sys.exit(main())
