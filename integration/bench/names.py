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

from bench import names_coalescing, names_http_only, parts
from harness.host.artifacts import need_commands
from harness.host.processes import end_with_parent
from harness.lab import boxes
from harness.net import namespaces

TARGETS = [*names_coalescing.TARGETS, *names_http_only.TARGETS]


def coalescing(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Pages of several names with one certificate."""
    return names_coalescing.measure(folder, quick=options.quick)


def http_only(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """First visits of hosts that refuse TLS."""
    return names_http_only.measure(folder, quick=options.quick)


PARTS: dict[str, parts.Part] = {"coalescing": coalescing, "http-only": http_only}


def ready() -> None:
    """Looks for what all parts need."""
    boxes.need_all()
    need_commands("chromium", "certutil")
    end_with_parent()
    namespaces.sweep()


if __name__ == "__main__":
    sys.exit(parts.measure("names", PARTS, TARGETS, parts.parser("names", __doc__, PARTS).parse_args(), ready))
