"""A user of the box who is neither root nor the service: the commands and readings that a running edge grants."""

from __future__ import annotations

from pathlib import Path

from bench.counted import Counted
from harness.boxes.local_box import local_box
from harness.boxes.local_users import obeyed
from harness.results.figures import at_most

TARGETS = [at_most("local_commands_obeyed", 0)]


def measure(folder: Path, *, quick: bool) -> dict[str, Counted]:  # noqa: ARG001 - the box has a folder of its own
    """Tries every local surface of a running edge."""
    with local_box() as box:
        found = box.surfaces()
        said = obeyed(found, box.namespace)
    return {"local_commands_obeyed": Counted(len(said), found.number, said)}
