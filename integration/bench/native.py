"""The rewriting crate without Envoy and WebAssembly: the speed of the same code as a native program."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.envoy import CONFIGURATION
from bench.real_pages import RealPage
from harness.artifacts import REPOSITORY
from harness.machine import cores, pinned


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


class Native:
    """The crate's example `throughput`, built with the settings of the shipped programs."""

    def __init__(self) -> None:
        command = [
            "cargo", "build", "--locked", "--release", "--package", "url-rewriting", "--example", "throughput",
            "--message-format", "json-render-diagnostics",
        ]  # fmt: skip
        built = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True)
        messages = [json.loads(line) for line in built.stdout.splitlines()]
        programs = [
            one["executable"] for one in messages if one.get("executable") and one["target"]["name"] == "throughput"
        ]
        self.program = Path(programs[-1])

    def run(self, page: RealPage, milliseconds: int) -> NativeRun:
        """Rewrites a page repeatedly for this time."""
        command = [self.program, page.file, page.host, json.dumps(CONFIGURATION), str(milliseconds)]
        done = subprocess.run(pinned(command, cores()[0]), capture_output=True, text=True, check=True, timeout=60)
        return NativeRun(**json.loads(done.stdout))
