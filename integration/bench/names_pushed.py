"""`make bench ONLY=names-pushed`: DNS responses that a ground sends before clients ask. Writes
target/bench/names-pushed.json.

Each part is a module of `MODULES`. QUICK=1 takes fewer cases of each, and `ARGS=--part=days` runs one part. Needs root,
Chromium and dnsperf. The first run builds the CoreDNS of an earlier commit.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import (
    names_pushed_days,
    names_pushed_learned,
    names_pushed_memory,
    names_pushed_new_remote,
    names_pushed_poisoning,
    names_pushed_rate,
    parts,
)
from harness.host.artifacts import need_commands
from harness.host.processes import end_with_parent
from harness.lab import boxes
from harness.net import namespaces

MODULES = {
    "learned": names_pushed_learned,
    "days": names_pushed_days,
    "new-remote": names_pushed_new_remote,
    "poisoning": names_pushed_poisoning,
    "memory": names_pushed_memory,
    "rate": names_pushed_rate,
}
"""The module of each part. It has the targets of its figures, and `measure`."""
TARGETS = [target for module in MODULES.values() for target in module.TARGETS]


PARTS = {name: parts.of_module(module) for name, module in MODULES.items()}


def ready() -> None:
    """Looks for what all parts need."""
    boxes.need_all()
    need_commands("chromium", "certutil", "dnsperf", "go", "git")
    end_with_parent()
    namespaces.sweep()


if __name__ == "__main__":
    sys.exit(parts.main("names-pushed", __doc__, PARTS, TARGETS, ready))
