"""Unstable tests: listed, and only a few of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.host.unstable import MOST

TESTS = Path(__file__).parents[2]
FAILS_ONCE = """
import pathlib
def test_one():
    ran = pathlib.Path(__file__).with_suffix(".ran")
    before = ran.exists()
    ran.touch()
    assert before, "the first time"
"""


def run(folder: Path, *files: str) -> subprocess.CompletedProcess[str]:
    """Runs tests that fail the first time."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    for file in files:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(FAILS_ONCE)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "harness.host.unstable",
        "--reruns",
        "1",
        "--rootdir",
        str(folder),
        ".",
    ]
    environment = {"PYTHONPATH": str(TESTS), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_an_unstable_test_is_listed_with_its_first_failure(tmp_path: Path) -> None:
    done = run(tmp_path, "e2e/test_a.py")
    assert done.returncode == 0, done.stdout
    assert "unstable tests: 1 failed and ran again" in done.stdout
    assert "the first time" in done.stdout


@pytest.mark.parametrize(("count", "code"), [(MOST, 0), (MOST + 1, 1)])
def test_too_many_fail_the_run(tmp_path: Path, count: int, code: int) -> None:
    assert run(tmp_path, *(f"e2e/test_{number}.py" for number in range(count))).returncode == code


def test_an_attack_runs_once(tmp_path: Path) -> None:
    done = run(tmp_path, "hostile/test_a.py")
    assert done.returncode == 1, done.stdout
    assert "unstable" not in done.stdout
