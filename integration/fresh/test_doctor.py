"""`make doctor` and the checks that `make run` and `make test` begin with, on machines made of fake tools."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.host.artifacts import REPOSITORY

DOCTOR = REPOSITORY / "tools" / "doctor"
POSIX = (
    "awk", "cat", "cut", "df", "dirname", "grep", "head", "id", "ls", "mktemp", "rm", "sed", "sh", "tr",
)  # fmt: skip
"""The programs that the script itself uses. Every system has them."""
GO_NEEDED = re.search(r"^go (\S+)$", (REPOSITORY / "coredns-plugin" / "go.mod").read_text(), re.MULTILINE)[1]  # type: ignore[index]


class FakeMachine:
    """A PATH that holds only POSIX tools and fakes: a machine with every program, until a test removes one."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.memory = folder / "meminfo"
        self.home = folder / "home"
        for name in POSIX:
            (self.bin / name).symlink_to(shutil.which(name) or f"/bin/{name}")
        self.has("uname", "case $1 in -s) echo Linux;; -m) echo x86_64;; esac")
        self.has("rustup", "echo 'rustup 1.28.2 (x 2025-04-28)'")
        for name in ("rustc", "cargo"):
            self.has(name, "exit 1")
        self.has_go(GO_NEEDED)
        self.has("python3", 'case $1 in --version) echo "Python 3.13.1";; esac')
        self.has("cc", 'case $1 in --version) echo "cc 12.2";; *) cat >/dev/null;; esac')
        self.has("df", "echo head; echo /dev/x 99999999 1 99999999 1% /")
        self.has_memory(8000)

    def has(self, name: str, script: str) -> None:
        """Adds a command, or replaces it."""
        self.lacks(name)
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def has_go(self, version: str, toolchain: str = "auto") -> None:
        self.has("go", f'case $1 in version) echo "go version go{version} linux/amd64";; env) echo {toolchain};; esac')

    def has_memory(self, mib: int) -> None:
        self.memory.write_text(f"MemTotal: 99999999 kB\nMemAvailable: {mib * 1024} kB\nSwapFree: 0 kB\n")

    def lacks(self, name: str) -> None:
        """Removes a command."""
        (self.bin / name).unlink(missing_ok=True)

    def ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "LONGHAUL_MEMINFO": str(self.memory), "HOME": str(self.home)}
        return subprocess.run([DOCTOR, *arguments], capture_output=True, text=True, env=environment, check=False)

    def only_line(self, purpose: str = "run") -> str:
        """Returns the only line of a doctor that stops `make`."""
        done = self.ask(purpose)
        assert (done.returncode, done.stdout) == (1, "")
        [line] = done.stderr.splitlines()
        assert line.startswith(f"error: make {purpose} needs ")
        whole = self.ask()
        assert whole.returncode == 1
        assert "MISSING" in whole.stdout
        return line


@pytest.fixture
def fake(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


def test_a_machine_with_everything_needed_passes_in_silence(fake: FakeMachine) -> None:
    for purpose in ("run", "test"):
        done = fake.ask(purpose)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = fake.ask()
    assert done.returncode == 0
    assert "MISSING" not in done.stdout
    for version in ("rustup 1.28.2", f"Go {GO_NEEDED}", "Python 3.13.1", "cc 12.2"):
        assert version in done.stdout


def test_no_rustup(fake: FakeMachine) -> None:
    fake.lacks("rustup")
    assert "rustup" in fake.only_line()


def test_a_rustup_that_is_not_on_the_path(fake: FakeMachine) -> None:
    """The shell that has just installed it has such a PATH."""
    (fake.home / ".cargo" / "bin").mkdir(parents=True)
    (fake.bin / "rustup").rename(fake.home / ".cargo" / "bin" / "rustup")
    assert fake.only_line() == f'error: make run needs rustup on the PATH: . "{fake.home}/.cargo/env"'


def test_another_system(fake: FakeMachine) -> None:
    fake.has("uname", "case $1 in -s) echo Darwin;; -m) echo arm64;; esac")
    assert "Linux on x86_64 or aarch64 (found Darwin on arm64)" in fake.only_line()


def test_a_rustup_that_does_not_run_is_missing(fake: FakeMachine) -> None:
    fake.has("rustup", "exit 127")
    assert "rustup" in fake.only_line()


def test_no_go(fake: FakeMachine) -> None:
    fake.lacks("go")
    assert f"Go {GO_NEEDED} or newer: curl" in fake.only_line()


@pytest.mark.parametrize(("version", "toolchain"), [("1.19.8", ""), ("1.20", "auto"), ("1.24.1", "local")])
def test_go_too_old(fake: FakeMachine, version: str, toolchain: str) -> None:
    fake.has_go(version, toolchain)
    assert f"Go {GO_NEEDED} or newer (found {version})" in fake.only_line()


@pytest.mark.parametrize("version", ["1.26.8", "1.27", "1.100.1", "2.0"])
def test_a_newer_go_is_fine(fake: FakeMachine, version: str) -> None:
    fake.has_go(version, "local")
    assert fake.ask("run").returncode == 0


def test_a_go_that_fetches_the_needed_one_is_fine(fake: FakeMachine) -> None:
    fake.has_go("1.24.1", "auto")
    assert fake.ask("run").returncode == 0
    assert f"it fetches Go {GO_NEEDED} by itself" in fake.ask().stdout


def test_no_python(fake: FakeMachine) -> None:
    fake.lacks("python3")
    assert "Python 3.11 or newer: " in fake.only_line()


def test_python_too_old(fake: FakeMachine) -> None:
    fake.has("python3", "echo Python 3.9.2")
    assert "Python 3.11 or newer (found 3.9.2): " in fake.only_line()


def test_no_venv_module(fake: FakeMachine) -> None:
    fake.has("python3", 'case $1 in --version) echo "Python 3.11.2";; *) exit 1;; esac')
    assert "Python's venv module: " in fake.only_line()


def test_no_c_compiler(fake: FakeMachine) -> None:
    fake.lacks("cc")
    assert "a C compiler" in fake.only_line()


def test_a_c_compiler_that_links_nothing(fake: FakeMachine) -> None:
    fake.has("cc", 'case $1 in --version) echo "cc 12.2";; *) cat >/dev/null; exit 1;; esac')
    assert "the C library's development files" in fake.only_line()


def test_too_little_disk(fake: FakeMachine) -> None:
    fake.has("df", "echo head; echo /dev/x 999999 1 102400 1% /")
    assert "of free disk space" in fake.only_line()
    assert "(found 100)" in fake.only_line("test")


def test_too_little_memory(fake: FakeMachine) -> None:
    fake.has_memory(300)
    assert "of available memory (found 300)" in fake.only_line()


def test_every_missing_thing_is_one_line(fake: FakeMachine) -> None:
    for name in ("rustup", "cc"):
        fake.lacks(name)
    done = fake.ask("run")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 2


def test_packages_that_only_root_tests_need_are_listed_and_stop_nothing(fake: FakeMachine) -> None:
    fake.has("nft", "echo nftables v1.0.6")
    done = fake.ask()
    assert done.returncode == 0
    assert "ok       nft 1.0.6" in done.stdout
    assert re.search(r"missing  certutil: .*libnss3-tools", done.stdout)


def test_a_missing_toolchain_is_said_and_stops_nothing(fake: FakeMachine) -> None:
    """make installs it then."""
    done = fake.ask()
    assert done.returncode == 0
    assert "toolchain is missing; make installs it" in done.stdout


def test_every_package_it_names_is_one_that_ci_installs() -> None:
    """Both lists are for the same tests."""
    table = re.search(r"ROOT_TESTS='(.*?)'", DOCTOR.read_text(), re.DOTALL)
    ci = (REPOSITORY / ".ci" / "run").read_text()
    assert table
    named = {row.split()[1] for row in table[1].splitlines()} - {"util-linux"}
    assert {package for package in named if not re.search(rf"\s{re.escape(package)}\s", ci)} == set()


@pytest.mark.parametrize("target", ["run", "test"])
def test_make_stops_with_one_line_before_anything_is_built(fake: FakeMachine, target: str) -> None:
    for name in ("make", "bash"):
        (fake.bin / name).symlink_to(shutil.which(name) or f"/usr/bin/{name}")
    fake.lacks("rustup")
    done = subprocess.run(
        ["make", "-C", REPOSITORY, target],
        env={"PATH": str(fake.bin), "LONGHAUL_MEMINFO": str(fake.memory), "LONGHAUL_SKIPS": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    [line] = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert line.startswith("error: make")
    assert "rustup" in line
    assert "Building" not in done.stdout
