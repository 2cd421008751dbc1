"""`make bench ONLY=names`: names that clients resolve at a box. Writes target/bench/names.json.

Each part is a function of `PARTS`. QUICK=1 takes fewer cases of each, and `ARGS=--part=coalescing` runs one part. Needs
root and Chromium.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import (
    names_coalescing,
    names_first_visit,
    names_http_only,
    names_memory,
    names_new,
    names_outage,
    names_second_day,
    names_wrong_rtt,
    parts,
)
from harness.host.artifacts import need_commands
from harness.host.processes import end_with_parent
from harness.lab import boxes
from harness.net import namespaces

TARGETS = [
    *names_coalescing.TARGETS,
    *names_http_only.TARGETS,
    *names_new.TARGETS,
    *names_outage.TARGETS,
    *names_second_day.TARGETS,
    *names_wrong_rtt.TARGETS,
    *names_memory.TARGETS,
    *names_first_visit.TARGETS,
]


def coalescing(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Pages of several names with one certificate."""
    return names_coalescing.measure(folder, quick=options.quick)


def http_only(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """First visits of hosts that refuse TLS."""
    return names_http_only.measure(folder, quick=options.quick)


def new_names(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Many new names at once."""
    return names_new.measure(folder, quick=options.quick)


def outage(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """A new name after an outage."""
    return names_outage.measure(folder, quick=options.quick)


def second_day(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Yesterday's names after a night with a restart."""
    return names_second_day.measure(folder, quick=options.quick)


def rtt_third(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Names by a pair whose files state a wrong round trip."""
    return names_wrong_rtt.measure(folder, quick=options.quick)


def memory(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Memory that remembered names take."""
    return names_memory.measure(folder, quick=options.quick)


def first_visit(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Pages on the first day and on the second."""
    return names_first_visit.measure(folder, quick=options.quick)


PARTS: dict[str, parts.Part] = {
    "coalescing": coalescing,
    "http-only": http_only,
    "new-names": new_names,
    "outage": outage,
    "second-day": second_day,
    "rtt-third": rtt_third,
    "memory": memory,
    "first-visit": first_visit,
}


def ready() -> None:
    """Looks for what all parts need."""
    boxes.need_all()
    need_commands("chromium", "certutil")
    end_with_parent()
    namespaces.sweep()


if __name__ == "__main__":
    sys.exit(parts.main("names", __doc__, PARTS, TARGETS, ready))
