"""Child processes that end with this one: each has its own session, writes to a file, and is stopped by its id."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from .waiting import Timeout, wait_for

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def end_with_parent() -> None:
    """Runs in the child before exec. The kernel then ends the child when the test run dies in any way (Linux only)."""
    if hasattr(_libc, "prctl"):
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def whole_lines(log: Path) -> list[str]:
    """Returns the lines of a file in progress, without an unfinished last line."""
    *lines, _ = log.read_text(errors="replace").split("\n")
    return lines


def of_program(name: str, pids: Iterable[int]) -> list[int]:
    """Returns those of the processes that run a program of this name. One that has ended meanwhile runs none."""

    def runs(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/comm").read_text().strip() == name
        except OSError:
            return False

    return [pid for pid in pids if runs(pid)]


def is_running(pid: int) -> bool:
    """Returns true if any thread of a process runs. A zombie without other threads has ended. If only its first thread
    is a zombie, the process still runs and holds its ports."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
        return state != "Z" or len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except OSError:
        return False


class Child:
    """One running program and a context manager: the end of the context sends SIGTERM, then SIGKILL after
    `stop_timeout_s`. `env` is added to the environment of the tests, or replaces it with `clear_env`."""

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        clear_env: bool = False,
        pass_fds: Sequence[int] = (),
        stop_timeout_s: float = 10.0,
    ) -> None:
        self.command = [str(part) for part in command]
        self.log = log
        self.stop_timeout_s = stop_timeout_s
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env={**({} if clear_env else os.environ), **(env or {})},
                pass_fds=pass_fds,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )

    def output(self) -> str:
        """Returns the program's output so far."""
        return self.log.read_text(errors="replace")

    def wait_for_output(self, text: str, timeout_s: float = 60.0, *, at_start: bool = False) -> str:
        """Waits for a line that contains `text`, or begins with it, and returns the line. Fails at once if the program
        ends without it."""

        def fits(line: str) -> bool:
            return line.startswith(text) if at_start else text in line

        def line() -> str | None:
            ended = self.process.poll() is not None
            found = next((line for line in self.output().splitlines() if fits(line)), None)
            if found is None and ended:
                raise Timeout(f"{self.command[0]} ended with {self.process.returncode}:\n{self.output()[-4000:]}")
            return found

        try:
            return wait_for(f"{text!r} from {self.command[0]}", line, timeout_s)
        except Timeout as problem:
            raise Timeout(f"{problem}\n{self.output()[-4000:]}") from None

    def interrupt(self, timeout_s: float = 30.0) -> int:
        """Sends Ctrl-C to the whole group, as a terminal does. Returns the exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(timeout_s)

    def stop(self) -> None:
        """Ends the program and all other processes of its session."""
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(self.stop_timeout_s)
        self._kill_group()
        self.process.wait()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
