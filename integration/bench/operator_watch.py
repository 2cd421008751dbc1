"""The places where an operator looks: `longhaul status`, the status page and the journal. And the clients, who know
whether it works."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.operator_bed import Bed
from harness.host.processes import Child, whole_lines
from harness.machines.machine import Machine

PLACES = ("status", "page", "journal")
MARK = "@@@"
JOURNAL = "journalctl -q -o cat -u longhaul -u 'longhaul-host@*'"
TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.S)


@dataclass(frozen=True)
class Look:
    """The text of each place at one time."""

    status: str
    page: str
    journal: str
    ok: bool
    """True if `longhaul status` exits with 0."""

    def problems(self) -> list[str]:
        """The problems and warnings of `longhaul status`, or its error."""
        return [line for line in self.status.splitlines() if line.startswith(("problem:", "warning:", "error:"))]

    def text(self) -> str:
        """All places."""
        return f"{self.status}\n{self.page}\n{self.journal}"


class Watch:
    """Looks at a machine. The journal counts from the beginning of the watch."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        # A cursor would fail when the journal moves to the disk, and a time when the clock jumps.
        self._lines = int(machine.run(f"{JOURNAL} | wc -l").stdout)

    def look(self) -> Look:
        """Reads all three places. A command without an end counts as silent."""
        page = "curl -sm 5 http://127.0.0.1:9900/"
        journal = f"{JOURNAL} | tail -n +{self._lines + 1}"
        line = f'timeout 20 longhaul status 2>&1; echo "exit $?"; echo {MARK}; {page}; echo {MARK}; {journal}'
        done = subprocess.run(
            self._machine.line(line), capture_output=True, text=True, timeout=60, check=False, errors="replace"
        )
        status, page, journal = [*done.stdout.split(MARK), "", ""][:3]
        # The problems and warnings stand above the tables, some of which remember what is over.
        words = " ".join(html.unescape(TAG.sub(" ", page.partition("<section")[0])).split())
        return Look(status.strip(), words, journal, "exit 0" in status)


class Clients:
    """Users who load pages without a pause, in the clients' namespace."""

    def __init__(self, bed: Bed, *kind: str) -> None:
        name = "-".join(("clients", *kind))
        self._log = bed.folder / f"{name}.jsonl"
        self._log.touch()
        program = Path(__file__).with_name("operator_clients.py")
        command: Sequence[str | Path] = [sys.executable, program, self._log, bed.authority.files.cert, *kind]
        self._child = Child(bed.clients.inside(command), bed.folder / f"{name}.log", stop_timeout_s=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._child.stop()

    def attempts(self, since_s: float) -> list[dict]:
        """The attempts that began after a time (seconds since 1970)."""
        found = [json.loads(line) for line in whole_lines(self._log)[-400:] if line]
        return [one for one in found if one["began"] >= since_s]

    def served(self, since_s: float) -> set[str]:
        """The kinds of which an attempt that began after a time has succeeded."""
        return {one["kind"] for one in self.attempts(since_s) if one["ok"]}

    def failed(self, since_s: float) -> dict[str, str]:
        """The last failure of each kind that began after a time."""
        return {one["kind"]: one["why"] for one in self.attempts(since_s) if not one["ok"]}


ALL_KINDS = frozenset({"dns", "http", "https", "large"})


def is_ok(machine: Machine) -> bool:
    """True if `longhaul status` finds no problem."""
    return machine.run("longhaul status", check=False).returncode == 0


def healthy(bed: Bed, clients: Clients, since_s: float, within_s: float) -> float | None:
    """Waits until both ends are ok, and clients are served in all kinds and led to the box. Returns the seconds since
    `since_s`, or None after `within_s`."""
    ends = [bed.machine(name) for name in ("ship", "ground")]
    while time.time() - since_s < within_s:
        led = ends[0].run("nft list table inet longhaul", check=False).returncode == 0
        if led and clients.served(since_s) >= ALL_KINDS and all(is_ok(end) for end in ends):
            return time.time() - since_s
        time.sleep(1)
    return None
