"""`tools/fuzz-target` with a stand-in for cargo-fuzz: the outcome of a run, and what RESUME=1 leaves out."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.host.artifacts import REPOSITORY


class Fuzzing:
    """A repository with one target, and a cargo-fuzz that notes its arguments and ends as it should."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started = folder / "started"
        (folder / "tools").mkdir()
        (folder / "target/fuzz").mkdir(parents=True)
        shutil.copy(REPOSITORY / "tools/fuzz-target", folder / "tools")

    def run(self, seconds: int, code: int = 0) -> subprocess.CompletedProcess[str]:
        program = self.folder / "cargo-fuzz"
        program.write_text(
            f'#!/bin/sh\necho "$@" >>{self.started}\n'
            f"echo stat::number_of_executed_units: 7\necho stat::peak_rss_mb: 9\nexit {code}\n"
        )
        program.chmod(0o755)
        return subprocess.run(
            ["tools/fuzz-target", str(program), str(seconds), "filters/x/fuzz", "page"],
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", "LONGHAUL_NIGHTLY": "nightly"},
            capture_output=True,
            text=True,
            check=False,
        )

    def starts(self) -> list[str]:
        return self.started.read_text().splitlines() if self.started.exists() else []


@pytest.fixture
def fuzzing(tmp_path: Path) -> Fuzzing:
    return Fuzzing(tmp_path)


def test_a_run_tells_how_many_inputs_it_tried(fuzzing: Fuzzing) -> None:
    done = fuzzing.run(60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["== filters/x/fuzz page for 60 s", "stat::number_of_executed_units: 7"]
    assert "filters/x/fuzz/corpus/page -- " in fuzzing.starts()[0]
    assert "-max_total_time=60" in fuzzing.starts()[0]


def test_regressions_are_tried_too(fuzzing: Fuzzing) -> None:
    (fuzzing.folder / "filters/x/fuzz/regressions/page").mkdir(parents=True)
    fuzzing.run(60)
    assert "filters/x/fuzz/corpus/page filters/x/fuzz/regressions/page -- " in fuzzing.starts()[0]


def test_a_target_that_has_had_its_time_is_left_out(fuzzing: Fuzzing) -> None:
    fuzzing.run(60)
    done = fuzzing.run(60)
    assert (done.returncode, done.stdout) == (0, "== filters/x/fuzz page: it has had 60 s\n")
    assert len(fuzzing.starts()) == 1
    fuzzing.run(600)
    assert len(fuzzing.starts()) == 2


def test_a_target_that_failed_shows_its_output_and_runs_again(fuzzing: Fuzzing) -> None:
    done = fuzzing.run(60, code=77)
    assert done.returncode == 1
    assert "stat::peak_rss_mb: 9" in done.stdout
    assert fuzzing.run(60).returncode == 0
    assert len(fuzzing.starts()) == 2
