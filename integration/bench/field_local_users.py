"""The figure of orders and readings that a user of the box obtains from it. `make bench ONLY=field` calls it.

`python bench/field_local_users.py [LONGHAUL]` prints it with each of them, for the program of another version if one is
given. It needs root, because the box has a network namespace.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.local_box import local_box
from harness.local_users import obeyed


def local_commands_obeyed(program: Path | None = None) -> int:
    """Tries every local surface of a running edge as another user. Returns how many of them obeyed."""
    with local_box(program) as box:
        said = obeyed(box.surfaces(), box.namespace)
    for one in said:
        print(one)
    return len(said)


if __name__ == "__main__":
    print(f"local_commands_obeyed = {local_commands_obeyed(*map(Path, sys.argv[1:]))}")
