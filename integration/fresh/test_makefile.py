"""Lists in the Makefile that must match lists elsewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from harness.host.artifacts import REPOSITORY, built

COMPILERS = re.compile(r"\bcargo (--config \S+ )?(build|run|test|clippy|fmt)|\bgo build|tools/fuzz")


@pytest.mark.parametrize("target", ["run", "build", "test", "test-rust", "test-fuzz", "test-long", "lint", "fuzz"])
def test_checks_and_toolchain_come_before_everything_that_needs_them(target: str) -> None:
    done = subprocess.run(["make", "-n", target], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    check, toolchain = done.stdout.index("tools/doctor"), done.stdout.index("tools/toolchain")
    compilers = [found.start() for found in COMPILERS.finditer(done.stdout)]
    assert compilers
    assert check < toolchain < min(compilers)


def test_make_run_builds_only_what_it_starts() -> None:
    done = subprocess.run(["make", "-n", "run"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert "longhaul-link" not in done.stdout
    assert "h3get" not in done.stdout


def variable(name: str) -> list[str]:
    """Returns the words of a variable of the Makefile."""
    done = subprocess.run(
        ["make", "--no-print-directory", "--eval", f"shown: ; @echo $({name})", "shown"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_every_filter_that_is_built_is_configured() -> None:
    listed = subprocess.run([built("longhaul"), "filters"], capture_output=True, text=True, check=True)
    assert sorted(variable("FILTERS")) == sorted(listed.stdout.split())
    assert len(variable("FILTERS")) == len(crates()), "a filter's package is called NAME-filter"


def test_bazel_builds_every_filter() -> None:
    listed = re.findall(r'"(\w+)\.wasm"', (REPOSITORY / "BUILD.bazel").read_text())
    assert sorted(listed) == sorted(name.replace("-", "_") for name in variable("FILTERS"))


def crates() -> list[Path]:
    return list((REPOSITORY / "filters").glob("*/wasm*/Cargo.toml"))
