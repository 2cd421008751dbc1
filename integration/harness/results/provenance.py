"""The origin of committed figures: the program that was measured, and the machine."""

from __future__ import annotations

import os
import platform
import subprocess

from harness.host.artifacts import REPOSITORY, built

RESULTS = REPOSITORY / "integration" / "results"
"""The folder of committed figures."""


def machine_class() -> str:
    """The machine, as far as figures depend on it."""
    chromium = subprocess.run(["chromium", "--version"], capture_output=True, text=True, check=False).stdout.split()
    release = ".".join(platform.release().split(".")[:2])
    return ", ".join([f"{os.cpu_count()} cores", platform.machine(), f"Linux {release}", " ".join(chromium[:2])])


def built_commit() -> str:
    """The commit that the measured program was built from."""
    version = subprocess.run([built("longhaul"), "--version"], capture_output=True, text=True, check=True).stdout
    return version.partition("(commit ")[2].partition(")")[0]
