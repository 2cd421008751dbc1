"""A bench of several parts, each in a folder of its own. `--part` runs some of them."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.host.artifacts import Missing, scratch
from harness.host.usage import description
from harness.results.figures import Target, verdicts, write
from harness.results.provenance import built_commit

Figures = dict[str, float | None]
Part = Callable[[Path, argparse.Namespace], tuple[Figures, Any]]
"""Measures in a folder. Returns its figures and the details behind them."""


def of_module(module: ModuleType) -> Part:
    """Returns the part that a module measures."""

    def measure(folder: Path, options: argparse.Namespace) -> tuple[Figures, Any]:
        return module.measure(folder, quick=options.quick)

    return measure


def parser(bench: str, about: str | None, parts: Iterable[str]) -> argparse.ArgumentParser:
    """Returns a parser that knows `--part`. A bench adds its own options."""
    made = argparse.ArgumentParser(prog=f"make bench ONLY={bench}", description=(about or "").splitlines()[0])
    made.add_argument("--part", choices=list(parts), action="append", help="this part alone; may be repeated")
    return made


def main(
    bench: str, about: str | None, parts: Mapping[str, Part], targets: list[Target], ready: Callable[[], None]
) -> int:
    """Runs a bench without options of its own. Returns the status of the process."""
    return measure(bench, parts, targets, parser(bench, about, parts).parse_args(), ready)


def results_of(bench: str, chosen: list[str] | None) -> Path:
    """Returns the file of a run of the chosen parts, or of all. The results of one part never replace those of all."""
    return scratch("bench") / f"{'-'.join([bench, *(chosen or [])])}.json"


def _already(file: Path, commit: str, *, quick: bool) -> tuple[Figures, Any] | None:
    """Returns the figures and details of a part that this commit has measured."""
    if not file.exists():
        return None
    done = json.loads(file.read_text())
    return (done["figures"], done["details"]) if (done["commit"], done["quick"]) == (commit, quick) else None


def measure(
    bench: str,
    parts: Mapping[str, Part],
    targets: list[Target],
    options: argparse.Namespace,
    ready: Callable[[], None],
) -> int:
    """Runs the chosen parts, and prints and writes their figures. With RESUME=1, a run of all parts takes over those
    that this commit has measured already, on this machine. `ready` prepares the machine; if it raises `Missing`, the
    bench is skipped. Returns the status of the process."""
    options.quick = bool(os.environ.get("QUICK"))
    # Exits through every context manager, so that nothing of a bed remains.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    results = results_of(bench, options.part)
    try:
        ready()
    except Missing as reason:
        print(f"skipped: {reason}")
        write(results, {}, skipped=str(reason))
        return 0
    machine, commit = description(), built_commit()
    resumes = bool(os.environ.get("RESUME")) and not options.part
    figures: Figures = {}
    details: dict[str, Any] = {}
    for name in options.part or parts:
        began_s, kept = time.monotonic(), scratch("bench-parts") / f"{bench}-{name}.json"
        done = _already(kept, commit, quick=options.quick) if resumes else None
        print(f"-- {name}{', measured already' if done else ''}", flush=True)
        if not done:
            with tempfile.TemporaryDirectory(prefix=f"lh-{bench}-") as folder:
                Path(folder).chmod(0o755)
                done = parts[name](Path(folder), options)
            write(kept, done[0], commit=commit, quick=options.quick, details=done[1])
        found, details[name] = done
        figures |= found
        print(f"-- {name}, {time.monotonic() - began_s:.0f} s: {found}", flush=True)
    print(f"\n{verdicts(figures, targets)}\n")
    origin = {"commit": commit, "date": time.strftime("%Y-%m-%d", time.gmtime()), "machine": machine}
    chosen = {"parts": options.part} if options.part else {}
    write(results, figures, targets, **origin, **chosen, quick=options.quick, details=details)
    print(f"written to {results}")
    return 0
