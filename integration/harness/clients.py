"""Command-line clients inside a namespace: curl and dig, with their answers taken apart."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .namespaces import Namespace

_counter = itertools.count()


@dataclass
class Answer:
    """An HTTP answer. Header names are lower case; `headers` keeps every line, `header` joins repeats with a comma."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    version: str = ""
    problem: str = ""
    """curl's complaint when the exchange did not end well, such as a body cut short."""
    remote: str = ""
    seconds: float = 0.0

    def header(self, name: str) -> str | None:
        """The value of a header, None when absent."""
        values = [value for key, value in self.headers if key == name.lower()]
        return ", ".join(values) if values else None


class Curl:
    """curl in a namespace (or here when None), with options that go with every request."""

    def __init__(self, folder: Path, namespace: Namespace | None = None, *options: str) -> None:
        self._folder = folder
        self._namespace = namespace
        self._options = options

    def get(self, url: str, *options: str, timeout_s: float = 30.0) -> Answer:
        """Fetches a URL as it is: no redirects followed, nothing decoded."""
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
        """Fetches a URL and tells when each part of the body arrived, in seconds after the first. `came` is called with
        each as soon as it has."""
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
    """Status and headers of the last head in a dump (1xx heads may come before it)."""
    heads = [head for head in re.split(r"\r\n\r\n", text) if head.startswith("HTTP/")]
    if not heads:
        return 0, []
    first, *lines = heads[-1].split("\r\n")
    pairs = [line.split(":", 1) for line in lines if ":" in line]
    return int(first.split()[1]), [(name.lower(), value.strip()) for name, value in pairs]


@dataclass
class DnsAnswer:
    """A DNS answer: records as (owner, TTL, type, data)."""

    status: str
    flags: list[str] = field(default_factory=list)
    answer: list[tuple[str, int, str, str]] = field(default_factory=list)
    authority: list[tuple[str, int, str, str]] = field(default_factory=list)
    seconds: float = 0.0
    """From the question to the answer."""

    def addresses(self) -> list[str]:
        """Addresses in the order of the answer."""
        return [data for _, _, kind, data in self.answer if kind in ("A", "AAAA")]


def dig(
    name: str, kind: str, server: str, *options: str, port: int = 53, namespace: Namespace | None = None
) -> DnsAnswer:
    """Asks one question once."""
    command = ["dig", f"@{server}", "-p", str(port), "+tries=1", "+time=15", *options, name, kind]
    done = subprocess.run(
        namespace.inside(command) if namespace else command, capture_output=True, text=True, timeout=40, check=False
    )
    status = re.search(r"status: (\w+)", done.stdout)
    if status is None:
        return DnsAnswer(f"no answer: {done.stdout.strip()} {done.stderr.strip()}")
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
