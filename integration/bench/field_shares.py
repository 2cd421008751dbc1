"""Figures of what one client can hold of all that clients share. `make bench ONLY=field` calls them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.artifacts import REPOSITORY

MADE_PAGES = 18_000
"""Pages that are encoded as deltas. Of as many, 84 once made the encoder panic."""


def delta_panics(pages: int = MADE_PAGES) -> int:
    """Encodes made pages as deltas of made bases, flushed in pieces. Returns the pages that broke the encoder, or that
    came out as other pages."""
    # A shipped build aborts at the first panic. This one goes on and counts.
    unwinding = ["--config", 'profile.release.panic="unwind"']
    example = ["--package", "pipe-encoding", "--example", "made_pages"]
    run = ["cargo", "run", "--quiet", "--release", "--locked", *unwinding, *example, "--", str(pages)]
    said = subprocess.run(run, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    [(panics, wrong)] = re.findall(rf"^{pages} pages, (\d+) panics, (\d+) wrong$", said, re.M)
    return int(panics) + int(wrong)


def main() -> int:
    """Prints each figure."""
    for name, figure in {"delta_panics": delta_panics}.items():
        print(f"{name}: {figure()}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
