"""A wall clock for one box, which can jump without an effect on other programs.

This module compiles a library (clock.c) and preloads it into Envoy and longhaul-objects. Go programs ask the kernel
without a library, so they cannot have another time in this way.
"""

from __future__ import annotations

import shlex
import struct
import subprocess
from pathlib import Path

from .artifacts import built, need_commands

SOURCE = Path(__file__).with_name("clock.c")


class Clock:
    """The clock of the programs that `envoy` and `objects` start. It is the machine's until `jump`."""

    def __init__(self, folder: Path) -> None:
        need_commands("cc")
        library = folder / "clock.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, SOURCE], check=True)
        self._offset = folder / "clock"
        self._offset.write_bytes(struct.pack("=q", 0))
        self.envoy = self._with_clock(folder, library, "envoy")
        """Replaces Envoy (`--envoy`)."""
        self.objects = self._with_clock(folder, library, "longhaul-objects")
        """Replaces longhaul-objects (`--objects`)."""

    def _with_clock(self, folder: Path, library: Path, name: str) -> Path:
        """Writes a program that starts another one with this clock."""
        program = folder / f"{name}-with-a-clock"
        here, real = (shlex.quote(str(path)) for path in (self._offset, built(name)))
        program.write_text(
            f'#!/bin/sh\nLD_PRELOAD={shlex.quote(str(library))} LONGHAUL_TEST_CLOCK={here} exec {real} "$@"\n'
        )
        program.chmod(0o755)
        return program

    def jump(self, ahead_s: int) -> None:
        """Sets the clock `ahead_s` seconds ahead of the machine's, or behind it if negative."""
        # In place, because the program has mapped the file.
        with self._offset.open("r+b") as file:
            file.write(struct.pack("=q", ahead_s))
