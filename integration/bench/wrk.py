"""Load from wrk: a few keep-alive connections that request one page repeatedly."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.host.usage import pinned

CONNECTIONS = 8

REPORT = """
done = function(summary, latency, requests)
  local bad = summary.errors
  io.write(string.format('\\nRESULT {"requests": %d, "seconds": %f, "bytes": %d, "p50_ms": %f, "failed": %d}\\n',
    summary.requests, summary.duration / 1e6, summary.bytes, latency:percentile(50) / 1e3,
    bad.connect + bad.read + bad.write + bad.status + bad.timeout))
end
"""


@dataclass(frozen=True)
class Load:
    """The outcome of one run."""

    requests: int
    seconds: float
    bytes: int
    p50_ms: float
    failed: int


class Wrk:
    """The load generator, in Debian's version, with one thread."""

    def __init__(self, folder: Path, on: Sequence[int]) -> None:
        self._script = folder / "report.lua"
        self._script.write_text(REPORT)
        self._on = on

    def run(
        self, port: int, host: str, path: str, seconds: int, connections: int = CONNECTIONS, accept_encoding: str = ""
    ) -> Load:
        """Requests one URL for some seconds. A failed request would be a fast one, so it fails the run."""
        accepts = ["--header", f"Accept-Encoding: {accept_encoding}"] if accept_encoding else []
        command = [
            "wrk", "--threads", "1", "--connections", str(connections), "--duration", f"{seconds}s", "--timeout", "20s",
            "--script", str(self._script), "--header", f"Host: {host}", *accepts, f"http://127.0.0.1:{port}{path}",
        ]  # fmt: skip
        done = subprocess.run(
            pinned(command, self._on), capture_output=True, text=True, check=True, timeout=seconds + 60
        )
        result = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
        load = Load(**json.loads(result.removeprefix("RESULT ")))
        if load.failed or not load.bytes:
            raise RuntimeError(f"{load.failed} of {load.requests} requests for {host}{path} failed:\n{done.stdout}")
        return load
