"""A part of `make bench ONLY=fleet`, the container image: its size."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from pathlib import Path

from harness.delivery.packages import PROGRAMS
from harness.host.artifacts import dist, need_commands, need_root
from harness.results.figures import at_most

TARGETS = [at_most("image_mib", 330)]


def measure(_folder: Path) -> dict[str, float | None]:
    """Builds the image as `make image` does. Returns the size of its larger target after decompression."""
    need_root()
    need_commands("go", "strip", "buildah", "mmdebstrap")
    arch = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    _python(PROGRAMS, "--dist", dist(), "--arches", arch, "--formats")
    said = _python(PROGRAMS / "image.py", "--no-archives")
    return {"image_mib": max(int(size) for size in re.findall(r": (\d+) MB$", said, re.MULTILINE)) * 1e6 / (1 << 20)}


def _python(*arguments: str | Path) -> str:
    return subprocess.run(
        [sys.executable, *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=True, timeout=900
    ).stdout
