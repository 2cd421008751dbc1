"""Runs the programs, and writes which of them differ. `make bench ONLY=field` calls it.

python -m clients RESULTS [--quick]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from harness.host.artifacts import Missing

from .compare import PROGRAMS, standing
from .servers import need_apache


def main() -> int:
    """Writes the number of programs, and the ways on which each differs from direct. A program that is not installed
    does not count."""
    parser = argparse.ArgumentParser(prog="python -m clients", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--quick", action="store_true", help="without the programs that are marked long")
    options = parser.parse_args()
    ran, differ, absent = 0, {}, []
    try:
        need_apache()
    except Missing as reason:
        options.results.write_text(json.dumps({"missing": str(reason)}))
        return 0
    # The servers' user cannot enter a folder that belongs to root alone.
    with tempfile.TemporaryDirectory(prefix="longhaul-clients-") as folder, standing(Path(folder)) as ways:
        for program in PROGRAMS:
            if program.long and options.quick:
                continue
            try:
                found = ways.differences(program)
            except Missing as reason:
                absent.append(f"{program.name}: {reason}")
                continue
            except AssertionError as reason:
                found = {"direct": str(reason)}
            ran += 1
            if found:
                differ[program.name] = sorted(found)
                print("\n\n".join(found.values()), file=sys.stderr)
    for line in absent:
        print(f"absent: {line}")
    options.results.write_text(json.dumps({"programs": ran, "differ": differ, "absent": absent}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
