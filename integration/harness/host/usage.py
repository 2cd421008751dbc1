"""The processors, the processor time and the memory of the processes that were started (Linux).

A contender has one core for itself. The load generator and the origin have the others. So a server with many threads
has no more processor time than one with a single worker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

PROC = Path("/proc")


def cores() -> tuple[list[int], list[int]]:
    """The contender's core, and those of everything else. They are the same on a machine with a single core."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[-1:], usable[:-1] or usable


def pinned(command: Sequence[str | Path], on: Sequence[int]) -> list[str | Path]:
    """The command, restricted to some cores."""
    return ["taskset", "--cpu-list", ",".join(map(str, on)), *command]


def processes(session: int) -> Iterator[Path]:
    """The folders in /proc of every process of a session that has not ended."""
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if fields[0] != "Z" and int(fields[3]) == session:
                yield folder


def cpu_seconds(session: int) -> float:
    """The processor time that a session's threads have used so far. Threads that ended do not count."""
    nanoseconds = 0
    for folder in processes(session):
        for thread in (folder / "task").iterdir():
            nanoseconds += int((thread / "schedstat").read_text().split()[0])
    return nanoseconds / 1e9


def resident_kib(session: int) -> int:
    """The memory that a session's processes hold now."""
    return sum(_status_kib(folder, "VmRSS") for folder in processes(session))


def peak_resident_kib(session: int) -> int:
    """The most memory that they held since `forget_peak`."""
    return sum(_status_kib(folder, "VmHWM") for folder in processes(session))


def forget_peak(session: int) -> None:
    """Begins a new peak (proc(5), clear_refs)."""
    for folder in processes(session):
        (folder / "clear_refs").write_text("5")


def _status_kib(folder: Path, name: str) -> int:
    lines = (folder / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))


def model() -> str:
    """The processor in one line, for the record."""
    models = {
        line.split(":", 1)[1].strip()
        for line in (PROC / "cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    }
    return f"{os.cpu_count()} cores, {' / '.join(sorted(models)) or 'unknown processor'}"


def description() -> str:
    """The machine before a measurement: the processor, and the other work on it."""
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    return f"{model()}; load average before: {load}"
