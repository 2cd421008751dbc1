"""Starts the origins program with a site, and reads its log."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.host.artifacts import built
from harness.host.processes import Child, whole_lines
from harness.host.waiting import wait_for
from harness.net.namespaces import Namespace


@dataclass
class Site:
    """The content of the origins. The fields are those of their manifest."""

    dns: list[str] = field(default_factory=list)
    http_port: int = 80
    https_port: int = 0
    http3_port: int = 0
    ca: dict[str, str] | None = None
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    records: dict[str, list[str]] = field(default_factory=dict)

    def write(self, path: Path) -> Path:
        """Writes the manifest."""
        path.write_text(json.dumps(self.__dict__, indent=1))
        return path


class Origins:
    """The running origins, in `namespace` or in the machine's own network."""

    def __init__(self, manifest: Path, folder: Path, namespace: Namespace | None = None) -> None:
        self.log = folder / "origins.jsonl"
        command: list[str | Path] = [built("origins"), "-manifest", manifest, "-log", self.log]
        self._command = namespace.inside(command) if namespace else command
        self._output = folder / "origins.log"
        self._child: Child | None = None
        self._seen = 0

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

    @property
    def child(self) -> Child:
        """The running program."""
        assert self._child, "not started"
        return self._child

    def events(self, event: str, **wanted: str) -> list[dict[str, Any]]:
        """Returns events of one kind since the last `forget`, oldest first. `wanted` filters by field."""
        found = [json.loads(line) for line in whole_lines(self.log)[self._seen :]]
        return [
            one
            for one in found
            if one["event"] == event and all(one.get(key) == value for key, value in wanted.items())
        ]

    def requests(self, **wanted: str) -> list[dict[str, Any]]:
        """Returns the requests so far, for example `requests(host="img.demo.test")`."""
        return self.events("request", **wanted)

    def wait_for_request(self, timeout_s: float = 30.0, **wanted: str) -> dict[str, Any]:
        """Waits for such a request and returns it."""
        return wait_for(f"a request {wanted} at the origins", lambda: self.requests(**wanted), timeout_s)[0]

    def forget(self) -> None:
        """Ignores all events so far."""
        self._seen = len(whole_lines(self.log))
