"""Real client programs with and without Longhaul (`integration/clients`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bench.counted import Counted
from harness.host.artifacts import REPOSITORY, Missing
from harness.results.figures import at_most

TARGETS = [at_most("programs_differ", 0)]


def measure(folder: Path, *, quick: bool) -> dict[str, Counted]:
    """Runs all programs, or the quick half."""
    results = folder / "programs.json"
    command = [sys.executable, "-m", "clients", results, *(["--quick"] if quick else [])]
    subprocess.run(command, cwd=REPOSITORY / "integration", check=True)
    found = json.loads(results.read_text())
    if reason := found.get("missing"):
        raise Missing(reason)
    wrong = [f"{program}: {', '.join(ways)}" for program, ways in found["differ"].items()]
    return {"programs_differ": Counted(len(wrong), found["programs"], wrong)}
