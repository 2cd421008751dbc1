"""Examples of the crates that the bench builds: the rewriting crate as a native program, and a filter without work."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.envoy import CONFIGURATION
from bench.real_pages import RealPage
from harness.host.artifacts import REPOSITORY
from harness.host.usage import cores, pinned


def put_back() -> Path:
    """Builds the filter that puts pages back unchanged. Returns its module."""
    command = [
        "cargo", "build", "--locked", "--release", "--package", "filter-host", "--target", "wasm32-wasip1",
        "--example", "put_back", "--message-format", "json-render-diagnostics",
    ]  # fmt: skip
    files = [Path(file) for one in _made(command) for file in one.get("filenames", [])]
    return next(file for file in files if file.name == "put_back.wasm")


def _made(command: list[str]) -> list[dict[str, Any]]:
    """Returns cargo's messages about a build."""
    done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@dataclass(frozen=True)
class NativeRun:
    """One page, rewritten repeatedly on the contender's core."""

    pages: int
    bytes: int
    cpu_seconds: float
    moved: int

    @property
    def bytes_per_second(self) -> float:
        """Of the page, not of the output."""
        return self.pages * self.bytes / self.cpu_seconds


@dataclass(frozen=True)
class Instructions:
    """Instructions of one pass over a page, by byte of the page."""

    crate: float
    scanner: float


class Native:
    """Examples of the crates, built with the settings of the shipped programs.

    `throughput` rewrites a page, and `count` only finds its URLs.
    """

    def __init__(self) -> None:
        command = [
            "cargo", "build", "--locked", "--release", "--package", "url-rewriting", "--package", "page-scanner",
            "--example", "throughput", "--example", "count", "--message-format", "json-render-diagnostics",
        ]  # fmt: skip
        programs = {one["target"]["name"]: Path(one["executable"]) for one in _made(command) if one.get("executable")}
        self.program = programs["throughput"]
        self.counter = programs["count"]

    def run(self, page: RealPage, milliseconds: int) -> NativeRun:
        """Rewrites a page repeatedly for this time."""
        command = [self.program, page.file, page.host, json.dumps(CONFIGURATION), str(milliseconds)]
        done = subprocess.run(pinned(command, cores()[0]), capture_output=True, text=True, check=True, timeout=60)
        return NativeRun(**json.loads(done.stdout))

    def instructions(self, page: RealPage) -> Instructions | None:
        """Counts instructions by callgrind, without those of the program's start. None without valgrind."""
        if shutil.which("valgrind") is None:
            return None
        rewriting = [self.program, page.file, page.host, json.dumps(CONFIGURATION), "0"]
        return Instructions(
            _collected(rewriting, "throughput::rewrite") / page.bytes,
            _collected([self.counter, page.file], "count::scan") / page.bytes,
        )


def _collected(command: list, function: str) -> int:
    """Returns the instructions of a function and of everything that it calls."""
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--toggle-collect=*{function}*"]
    done = subprocess.run([*valgrind, *command], capture_output=True, text=True, check=True, timeout=300)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if not found or not int(found[1]):
        raise RuntimeError(f"callgrind counted nothing in {function}: {done.stderr[-500:]}")
    return int(found[1])
