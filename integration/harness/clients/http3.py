"""A client that speaks only HTTP/3, so that errors show instead of a fallback to TCP."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from harness.host.artifacts import built
from harness.net.namespaces import Namespace


@dataclass
class H3Answer:
    """A response over HTTP/3, or the problem."""

    url: str
    status: int = 0
    proto: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    """Names are lower case. Repeats are joined with a comma."""
    bytes: int = 0
    seconds: float = 0.0
    problem: str = ""
    body: str = ""
    """With `-body`."""


def h3get(trusted: Path, *arguments: str | Path, namespace: Namespace | None = None) -> list[H3Answer]:
    """Fetches URLs, all at once. `arguments` are those of integration/origins/h3get."""
    command: list[str | Path] = [built("h3get"), "-cacert", trusted, *arguments]
    done = subprocess.run(
        namespace.inside(command) if namespace else command, capture_output=True, text=True, timeout=90, check=True
    )
    return [_answer(json.loads(line)) for line in done.stdout.splitlines()]


def _answer(line: dict[str, object]) -> H3Answer:
    header = line.pop("header", None) or {}
    assert isinstance(header, dict)
    line["headers"] = {name.lower(): ", ".join(values) for name, values in header.items()}
    return H3Answer(**line)  # type: ignore[arg-type]
