"""Command-line clients in a namespace: curl and dig, with parsed responses."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.net.namespaces import Namespace

_counter = itertools.count()


@dataclass
class Answer:
    """An HTTP response. Header names are lower case. `headers` keeps every line, `header` joins repeats with a
    comma."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    version: str = ""
    problem: str = ""
    """curl's message if the exchange failed, for example after a truncated body."""
    remote: str = ""
    seconds: float = 0.0

    def header(self, name: str) -> str | None:
        """Returns the value of a header field, or None if it is absent."""
        values = [value for key, value in self.headers if key == name.lower()]
        return ", ".join(values) if values else None


class Curl:
    """curl in a namespace (None: in this one), with options for every request."""

    def __init__(self, folder: Path, namespace: Namespace | None = None, *options: str) -> None:
        self._folder = folder
        self._namespace = namespace
        self._options = options

    def get(self, url: str, *options: str, timeout_s: float = 30.0) -> Answer:
        """Fetches a URL as it is. Follows no redirects and decodes nothing."""
        number = next(_counter)
        head, body = self._folder / f"curl-{number}.head", self._folder / f"curl-{number}.body"
        command: list[str | Path] = [
            "curl", "--silent", "--show-error", "--globoff", "--path-as-is", "--max-time", str(timeout_s),
            "--dump-header", head, "--output", body,
            "--write-out", "%{http_version} %{remote_ip}:%{remote_port} %{time_total}",
            *self._options, *options, url,
        ]  # fmt: skip
        if self._namespace:
            command = list(self._namespace.inside(command))
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s + 10, check=False)
        version, remote, seconds = [*done.stdout.split(), "", "", "0"][:3]
        status, headers = _parse_head(head.read_bytes().decode("latin-1") if head.exists() else "")
        answer = Answer(
            status, headers, body.read_bytes() if body.exists() else b"", version,
            done.stderr.strip() if done.returncode else "", remote, float(seconds),
        )  # fmt: skip
        head.unlink(missing_ok=True)
        body.unlink(missing_ok=True)
        return answer

    def stream(
        self, url: str, *options: str, timeout_s: float = 30.0, came: Callable[[bytes], None] = lambda _: None
    ) -> list[tuple[float, bytes]]:
        """Fetches a URL. Returns the parts of the body, each with its time in seconds after the first. Calls `came`
        with each part on its arrival."""
        command = ["curl", "--silent", "--no-buffer", "--max-time", str(timeout_s), *self._options, *options, url]
        parts: list[tuple[float, bytes]] = []
        with subprocess.Popen(
            self._namespace.inside(command) if self._namespace else command, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout
            while part := os.read(process.stdout.fileno(), 1 << 16):
                parts.append((time.monotonic(), part))
                came(part)
        return [(at_s - parts[0][0], part) for at_s, part in parts]


def _parse_head(text: str) -> tuple[int, list[tuple[str, str]]]:
    """Parses status and headers of the last head in a dump, which may follow 1xx heads."""
    heads = [head for head in re.split(r"\r\n\r\n", text) if head.startswith("HTTP/")]
    if not heads:
        return 0, []
    first, *lines = heads[-1].split("\r\n")
    pairs = [line.split(":", 1) for line in lines if ":" in line]
    return int(first.split()[1]), [(name.lower(), value.strip()) for name, value in pairs]


@dataclass
class DnsAnswer:
    """A DNS response: records as (owner, TTL, type, data)."""

    status: str
    flags: list[str] = field(default_factory=list)
    answer: list[tuple[str, int, str, str]] = field(default_factory=list)
    authority: list[tuple[str, int, str, str]] = field(default_factory=list)
    seconds: float = 0.0
    """The time from query to response."""

    def addresses(self) -> list[str]:
        """Returns the addresses in the order of the response."""
        return [data for _, _, kind, data in self.answer if kind in ("A", "AAAA")]


def dig(
    name: str, kind: str, server: str, *options: str, port: int = 53, namespace: Namespace | None = None
) -> DnsAnswer:
    """Sends one query, without retries."""
    command = ["dig", f"@{server}", "-p", str(port), "+tries=1", "+time=15", *options, name, kind]
    done = subprocess.run(
        namespace.inside(command) if namespace else command, capture_output=True, text=True, timeout=40, check=False
    )
    status = re.search(r"status: (\w+)", done.stdout)
    if status is None:
        return DnsAnswer(f"no response: {done.stdout.strip()} {done.stderr.strip()}")
    flags = re.search(r";; flags: ([\w ]*);", done.stdout)
    took = re.search(r";; Query time: (\d+) msec", done.stdout)
    result = DnsAnswer(status[1], flags[1].split() if flags else [], seconds=int(took[1]) / 1000 if took else 0.0)
    section = None
    for line in done.stdout.splitlines():
        if line.startswith(";; ANSWER"):
            section = result.answer
        elif line.startswith(";; AUTHORITY"):
            section = result.authority
        elif line.startswith(";; ") or not line:
            section = None
        elif section is not None and not line.startswith(";"):
            owner, ttl, _, record, data = line.split(None, 4)
            section.append((owner, int(ttl), record, data))
    return result
