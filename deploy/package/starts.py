"""Starts each program of a package once. Those of another architecture run under Debian's qemu-user-static."""

from __future__ import annotations

import shutil
from pathlib import Path

from programs import Arch
from project import SIDE_PROGRAMS, native, run

CONFIG = """\
role: edge
link: { rtt: 600ms, down: 20mbit, up: 5mbit }
proxy: { addresses: [198.51.100.12] }
upstream: { resolvers: [192.0.2.53] }
"""


def start_each(arch: Arch, programs: Path) -> str:
    """Returns a list of the started programs, or why none was started. Raises Failed if a program does not start."""
    prefix: list[str] = []
    if arch.name != native():
        emulator = f"qemu-{arch.wheel}-static"
        if not shutil.which(emulator):
            return f"no program was started, because {emulator} is missing (Debian package qemu-user-static)"
        prefix = [emulator, "-L", f"/usr/{arch.gnu}"]
    config, rendered = programs.parent / "start.yaml", programs.parent / "rendered"
    config.write_text(CONFIG)
    # `render` keeps unchanged files, and the filters of earlier builds.
    shutil.rmtree(rendered, ignore_errors=True)
    run(*prefix, programs / "longhaul", "check", config)
    run(*prefix, programs / "longhaul", "render", config, "--out", rendered)
    run(*prefix, programs / "envoy", "--mode", "validate", "--log-level", "error", "-c", rendered / "bootstrap.yaml")
    run(*prefix, programs / "coredns", "-version")
    for name in SIDE_PROGRAMS:
        run(*prefix, programs / name, "--version")
    return "started: longhaul check, longhaul render, envoy --mode validate, coredns -version, " + ", ".join(
        f"{name} --version" for name in SIDE_PROGRAMS
    )
