"""A clock on the wall that belongs to one Envoy, so that it can jump while nobody else's does.

A library of ours, compiled here, is preloaded into it (clock.c). Go's programs ask the kernel without any library and
cannot be told another time this way.
"""

from __future__ import annotations

import shlex
import struct
import subprocess
from pathlib import Path

from .artifacts import built, need_commands

SOURCE = Path(__file__).with_name("clock.c")


class Clock:
    """The time of the Envoy that `program` starts; the machine's own until `jump`."""

    def __init__(self, folder: Path) -> None:
        need_commands("cc")
        library = folder / "clock.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, SOURCE], check=True)
        self._offset = folder / "clock"
        self._offset.write_bytes(struct.pack("=q", 0))
        self.program = folder / "envoy-with-a-clock"
        """Takes the place of Envoy: LONGHAUL_ENVOY."""
        here, envoy = (shlex.quote(str(path)) for path in (self._offset, built("envoy")))
        self.program.write_text(
            f'#!/bin/sh\nLD_PRELOAD={shlex.quote(str(library))} LONGHAUL_TEST_CLOCK={here} exec {envoy} "$@"\n'
        )
        self.program.chmod(0o755)

    def jump(self, ahead_s: int) -> None:
        """The clock is so far ahead of the machine's from now on; behind it where negative."""
        # In place: the program has the file mapped.
        with self._offset.open("r+b") as file:
            file.write(struct.pack("=q", ahead_s))
