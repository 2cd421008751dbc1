"""Starts the link emulator between two namespaces and reads its counters."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.host.artifacts import built
from harness.host.processes import Child

from .namespaces import Namespace


class Link:
    """A link with the clients at end A and the wired side at end B. Its devices disappear when it stops."""

    def __init__(
        self,
        folder: Path,
        profile: str,
        clients: tuple[Namespace, str, str],
        wired: tuple[Namespace, str, str],
        *,
        seed: int = 1,
        changes: Mapping[str, str] | None = None,
    ) -> None:
        """`clients` and `wired` are namespace, device name and address/prefix. `changes` override values of the
        profile."""
        self._control = folder / "link.sock"
        self._output = folder / "link.log"
        self._command: list[str | Path] = [
            built("longhaul-link"), "--profile", profile, "--seed", str(seed), "--control", self._control,
            "--a-netns", clients[0].name, "--a-dev", clients[1], "--a-addr", clients[2],
            "--b-netns", wired[0].name, "--b-dev", wired[1], "--b-addr", wired[2],
        ]  # fmt: skip
        for key, value in (changes or {}).items():
            self._command += ["--set", f"{key}={value}"]
        self._child: Child | None = None

    def __enter__(self) -> Self:
        self._child = Child(self._command, self._output)
        try:
            self._child.wait_for_output("ready")
        except BaseException:
            self._child.stop()
            raise
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._child:
            self._child.stop()

    def statistics(self) -> dict[str, Any]:
        """Returns all counters since the start or the last `reset`."""
        return self._ask("stats")

    def reset(self) -> dict[str, Any]:
        """Returns all counters, and sets them to zero."""
        return self._ask("reset")

    def outage(self, what: str) -> None:
        """Interrupts the link from now on: `5s`, `500ms drop down`."""
        self._ask(f"outage {what}")

    def _ask(self, command: str) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(self._control))
            connection.sendall(command.encode() + b"\n")
            with connection.makefile("rb") as lines:
                answer = json.loads(lines.readline())
        if "error" in answer:
            raise RuntimeError(f"link emulator: {answer['error']}")
        return answer
