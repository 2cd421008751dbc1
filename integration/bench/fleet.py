"""`make bench ONLY=fleet`: boxes that work together. Writes target/bench/fleet.json.

Each part is a module with `TARGETS` and `measure`, which takes a folder and returns its figures.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import fleet_boxes, fleet_image, fleet_ring
from harness.host.artifacts import Missing, scratch
from harness.host.usage import description
from harness.results.figures import verdicts, write

PARTS = [fleet_ring, fleet_image, fleet_boxes]


def main() -> int:
    """Measures and prints all parts. A part that needs something that is missing is left out, with the reason."""
    machine = description()
    figures: dict[str, float | None] = {}
    absent: list[str] = []
    for part in PARTS:
        with tempfile.TemporaryDirectory(prefix="longhaul-fleet-") as folder:
            Path(folder).chmod(0o755)
            try:
                figures |= part.measure(Path(folder))
            except Missing as reason:
                absent.append(f"{part.__name__}: {reason}")
    targets = [target for part in PARTS for target in part.TARGETS]
    print(f"{verdicts(figures, targets)}\n")
    for line in absent:
        print(f"absent: {line}")
    results = scratch("bench") / "fleet.json"
    write(results, figures, targets, machine=machine, absent=absent)
    print(f"written to {results}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
