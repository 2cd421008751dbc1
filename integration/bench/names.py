"""`make bench ONLY=names`: names that clients resolve at a box. Writes target/bench/names.json.

Each part is a module of `MODULES`. QUICK=1 takes fewer cases of each, and `ARGS=--part=coalescing` runs one part. Needs
root and Chromium.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import (
    names_coalescing,
    names_first_visit,
    names_http_only,
    names_local_network,
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

MODULES = {
    "coalescing": names_coalescing,
    "http-only": names_http_only,
    "local-network": names_local_network,
    "new-names": names_new,
    "outage": names_outage,
    "second-day": names_second_day,
    "rtt-third": names_wrong_rtt,
    "memory": names_memory,
    "first-visit": names_first_visit,
}
"""The module of each part. It has the targets of its figures, and `measure`."""
TARGETS = [target for module in MODULES.values() for target in module.TARGETS]


PARTS = {name: parts.of_module(module) for name, module in MODULES.items()}


def ready() -> None:
    """Looks for what all parts need."""
    boxes.need_all()
    need_commands("chromium", "certutil")
    end_with_parent()
    namespaces.sweep()


if __name__ == "__main__":
    sys.exit(parts.main("names", __doc__, PARTS, TARGETS, ready))
