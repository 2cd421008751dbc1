"""`make bench ONLY=field`: faults that real programs, browsers, links and hostile users met. Writes
target/bench/field.json.

Each part is a module with `TARGETS` and `measure`, which takes a folder and returns its figures. `ARGS=--quick` runs a
few cases of each. `ARGS=--part=bodies` runs one part. Needs root.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import field_bodies, field_local, field_programs, field_shares, field_tunnels, field_unread
from bench.counted import Counted
from harness.host.artifacts import Missing, scratch
from harness.host.usage import description
from harness.lab import boxes
from harness.net import namespaces
from harness.results.figures import verdicts, write

PARTS = {
    "bodies": field_bodies, "local": field_local, "programs": field_programs, "shares": field_shares,
    "tunnels": field_tunnels, "unread": field_unread,
}  # fmt: skip
SHOWN = 20
"""The lines that the terminal shows of one figure. The results have all."""


def main() -> int:
    """Measures and prints all parts. A part that needs something that is missing is left out, with the reason."""
    parser = argparse.ArgumentParser(prog="make bench ONLY=field", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few cases, and 5 s of idleness instead of 400")
    parser.add_argument("--part", choices=PARTS, action="append", help="this part alone; may be repeated")
    options = parser.parse_args()
    quick = options.quick or bool(os.environ.get("QUICK"))
    machine = description()
    try:
        boxes.need_all()
    except Missing as reason:
        print(f"skipped: {reason}")
        write(scratch("bench") / "field.json", {}, skipped=str(reason))
        return 0
    namespaces.sweep()
    found: dict[str, Counted] = {}
    absent: list[str] = []
    for name in options.part or PARTS:
        began_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="longhaul-field-") as folder:
            Path(folder).chmod(0o755)
            try:
                measured = PARTS[name].measure(Path(folder), quick=quick)
            except Missing as reason:
                absent.append(f"{name}: {reason}")
                continue
        found |= measured
        print(f"-- {name}, {time.monotonic() - began_s:.0f} s")
        for figure, counted in measured.items():
            print(f"{figure}: {counted.value:g} of {counted.of}")
            print("".join(f"    {line}\n" for line in counted.wrong[:SHOWN]), end="", flush=True)
    targets = [target for name in options.part or PARTS for target in PARTS[name].TARGETS]
    figures: dict[str, float | None] = {name: counted.value for name, counted in found.items()}
    print(f"\n{verdicts(figures, targets)}\n")
    for line in absent:
        print(f"absent: {line}")
    # The results of one part would replace those of all.
    results = scratch("bench") / (f"field-{'-'.join(options.part)}.json" if options.part else "field.json")
    details = {name: {"of": counted.of, "wrong": counted.wrong} for name, counted in found.items()}
    write(results, figures, targets, machine=machine, quick=quick, absent=absent, details=details)
    print(f"written to {results}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
