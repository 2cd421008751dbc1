"""Child processes that end with us: each in a session of its own, its output in a file, stopped by its own id."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from .waiting import Timeout, wait_for

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def end_with_parent() -> None:
    """Runs in the child before exec: the kernel ends it when the test run dies, however that dies (Linux only)."""
    if hasattr(_libc, "prctl"):
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def whole_lines(log: Path) -> list[str]:
    """The lines of a file that somebody is writing, without one that is not written to its end."""
    *lines, _ = log.read_text(errors="replace").split("\n")
    return lines


def is_running(pid: int) -> bool:
    """Whether any thread of a process runs. One that nobody has waited for yet has ended all the same, but holds its
    ports as long as its first thread alone is a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
        return state != "Z" or len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except OSError:
        return False


class Child:
    """One running program. Use as a context manager; leaving it sends SIGTERM, then SIGKILL after `stop_timeout_s`.
    `env` is added to the environment of the tests, or replaces it with `clear_env`."""

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
        """What the program has written so far."""
        return self.log.read_text(errors="replace")

    def wait_for_output(self, text: str, timeout_s: float = 60.0) -> str:
        """Waits for a line that contains `text` and returns it; fails at once when the program ends before."""

        def line() -> str | None:
            ended = self.process.poll() is not None
            found = next((line for line in self.output().splitlines() if text in line), None)
            if found is None and ended:
                raise Timeout(f"{self.command[0]} ended with {self.process.returncode}:\n{self.output()[-4000:]}")
            return found

        try:
            return wait_for(f"{text!r} from {self.command[0]}", line, timeout_s)
        except Timeout as problem:
            raise Timeout(f"{problem}\n{self.output()[-4000:]}") from None

    def interrupt(self, timeout_s: float = 30.0) -> int:
        """Ctrl-C as a terminal sends it, to the whole group; returns the exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(timeout_s)

    def stop(self) -> None:
        """Ends the program and whatever is left of its session."""
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(self.stop_timeout_s)
        self._kill_group()
        self.process.wait()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
