"""The order in which files of tests run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harness.host.order import LONGEST

TESTS = Path(__file__).parents[2]


def test_each_file_of_the_list_is_there_once() -> None:
    assert len(LONGEST) == len(set(LONGEST))
    assert [file for file in LONGEST if not (TESTS / file).is_file()] == []


def test_the_longest_file_runs_first_and_tests_of_a_file_stay_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for file in ("e2e/test_a.py", LONGEST[1], LONGEST[0]):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("def test_two(): pass\ndef test_one(): pass\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "harness.host.order",
        "--collect-only",
        "-q",
        "--rootdir",
        tmp_path,
    ]
    environment = {"PYTHONPATH": str(TESTS), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([*command, "."], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if "::" in line]
    order = (LONGEST[0], LONGEST[1], "e2e/test_a.py")
    assert found == [f"{file}::{test}" for file in order for test in ("test_two", "test_one")], done.stdout
