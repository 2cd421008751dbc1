"""`make bench ONLY=names`: names that clients resolve at a box. Writes target/bench/names.json.

Each part is a function of `PARTS`. QUICK=1 takes fewer cases of each, and `ARGS=--part=coalescing` runs one part. Needs
root and Chromium.
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

from bench import names_coalescing
from harness.host.artifacts import Missing, need_commands, scratch
from harness.host.processes import end_with_parent
from harness.host.usage import description
from harness.lab import boxes
from harness.net import namespaces
from harness.results.figures import verdicts, write

Figures = dict[str, float | None]
TARGETS = [*names_coalescing.TARGETS]


def coalescing(folder: Path, options: argparse.Namespace) -> tuple[Figures, Any]:
    """Pages of several names with one certificate."""
    return names_coalescing.measure(folder, quick=options.quick)


PARTS: dict[str, Callable[[Path, argparse.Namespace], tuple[Figures, Any]]] = {
    "coalescing": coalescing,
}


def main() -> int:
    """Measures and prints all parts."""
    parser = argparse.ArgumentParser(prog="make bench ONLY=names", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append", help="this part alone; may be repeated")
    options = parser.parse_args()
    options.quick = bool(os.environ.get("QUICK"))
    results = scratch("bench") / "names.json"
    try:
        boxes.need_all()
        need_commands("chromium", "certutil")
    except Missing as reason:
        print(f"skipped: {reason}")
        write(results, {}, skipped=str(reason))
        return 0
    # Exits through every context manager, so that nothing of a bed remains.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    end_with_parent()
    machine = description()
    namespaces.sweep()
    figures: Figures = {}
    details: dict[str, Any] = {}
    for name in options.part or PARTS:
        began_s = time.monotonic()
        print(f"-- {name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="lh-names-") as folder:
            Path(folder).chmod(0o755)
            found, details[name] = PARTS[name](Path(folder), options)
        figures |= found
        print(f"-- {name}, {time.monotonic() - began_s:.0f} s", flush=True)
    print(f"\n{verdicts(figures, TARGETS)}\n")
    # The results of one part would replace those of all.
    if options.part:
        results = results.with_stem(f"names-{'-'.join(options.part)}")
    write(results, figures, TARGETS, machine=machine, quick=options.quick, details=details)
    print(f"written to {results}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
