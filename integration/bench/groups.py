"""`make bench ONLY=groups`: groups of clients, and TCP ports beside the web. Writes target/bench/groups.json.

QUICK=1 takes shorter runs, and `ARGS=--part=weights` runs one part. The bench needs root, because the bed consists of
network namespaces.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import groups_bill, groups_quota, groups_tunnels, groups_weights, parts
from harness.host.artifacts import need_root
from harness.host.processes import end_with_parent

MODULES = {
    "weights": groups_weights,
    "quota": groups_quota,
    "bill": groups_bill,
    "tunnels": groups_tunnels,
}
"""Each module has the targets of its figures."""
TARGETS = [target for module in MODULES.values() for target in module.TARGETS]
PARTS: dict[str, parts.Part] = {name: parts.of_module(module) for name, module in MODULES.items()}


def ready() -> None:
    """Looks for what all parts need."""
    need_root()
    end_with_parent()


if __name__ == "__main__":
    sys.exit(parts.main("groups", __doc__, PARTS, TARGETS, ready))
