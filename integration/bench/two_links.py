"""`make bench ONLY=two-links`: a pair over two links of which one fails. Writes target/bench/two-links.json.

QUICK=1 takes shorter runs, and `ARGS=--part=cuts` runs one part. The bench needs root, because the bed consists of
network namespaces.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import parts, two_links_both, two_links_cuts, two_links_idle, two_links_pages, two_links_stripped
from harness.host.artifacts import need_root
from harness.host.processes import end_with_parent

MODULES = {
    "cuts": two_links_cuts,
    "pages": two_links_pages,
    "both": two_links_both,
    "stripped": two_links_stripped,
    "idle": two_links_idle,
}
"""Each module has the targets of its figures."""
TARGETS = [target for module in MODULES.values() for target in module.TARGETS]
PARTS: dict[str, parts.Part] = {name: parts.of_module(module) for name, module in MODULES.items()}


def ready() -> None:
    """Looks for what all parts need."""
    need_root()
    end_with_parent()


if __name__ == "__main__":
    sys.exit(parts.main("two-links", __doc__, PARTS, TARGETS, ready))
