"""`make bench ONLY=instant`: first lookups of browsers that cost no round trip. Writes target/bench/instant.json.

Each part is a module of `MODULES`. QUICK=1 takes fewer cases of each, and `ARGS=--part=lookups` runs one part. Needs
root, Chromium, Firefox (firefox-esr), dnsperf and Go.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import instant_cost, instant_first_visit, instant_lookups, instant_pages, parts
from harness.browsers.firefox import PROGRAM
from harness.host.artifacts import need_commands
from harness.host.processes import end_with_parent
from harness.lab import boxes
from harness.net import namespaces

MODULES = {
    "lookups": instant_lookups,
    "cost": instant_cost,
    "pages": instant_pages,
    "first-visit": instant_first_visit,
}
"""The module of each part. It has the targets of its figures, and `measure`."""
TARGETS = [target for module in MODULES.values() for target in module.TARGETS]
PARTS = {name: parts.of_module(module) for name, module in MODULES.items()}


def ready() -> None:
    """Looks for what all parts need."""
    boxes.need_all()
    need_commands("chromium", PROGRAM, "certutil", "dnsperf", "go")
    end_with_parent()
    namespaces.sweep()


if __name__ == "__main__":
    sys.exit(parts.main("instant", __doc__, PARTS, TARGETS, ready))
