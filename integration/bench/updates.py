"""`make bench ONLY=updates`: what the cache of a remote spares the link. Writes target/bench/updates.json.

QUICK=1 takes one round, the light page alone and smaller objects. Needs root and Chromium.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import parts, updates_downloads, updates_second_user, updates_stale
from harness.host.artifacts import need_commands
from harness.host.processes import end_with_parent
from harness.lab import boxes
from harness.net import namespaces

TARGETS = [*updates_second_user.TARGETS, *updates_downloads.TARGETS, *updates_stale.TARGETS]


def second_user(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Users who load the same page, one after the other."""
    return updates_second_user.measure(folder, quick=options.quick)


def updates(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Clients that update at once, and again the next day."""
    return updates_downloads.updates(folder, quick=options.quick)


def resumed(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Downloads that are interrupted."""
    return updates_downloads.resumed(folder, quick=options.quick)


def stale(folder: Path, _: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Objects that a program requests while the ground is gone."""
    return updates_stale.measure(folder)


PARTS: dict[str, parts.Part] = {"second_user": second_user, "updates": updates, "resumed": resumed, "stale": stale}


def ready() -> None:
    """Looks for what all parts need."""
    boxes.need_all()
    need_commands("chromium", "certutil", "squid")
    end_with_parent()
    namespaces.sweep()


if __name__ == "__main__":
    sys.exit(parts.main("updates", __doc__, PARTS, TARGETS, ready))
