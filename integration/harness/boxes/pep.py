"""Longhaul itself, started as an operator does: a file, `longhaul run`, a line `ready`."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.host.artifacts import built
from harness.host.processes import Child, whole_lines
from harness.net.namespaces import Place
from harness.net.topology import PROXY, PROXY_RANGE, RESOLVER

from .admin import admin_socket, ask

PROXY_NAME = "pep.example.net"
"""The proxy's own https name in the bed."""

STEERED = "steered.txt"
"""The allowlist, which stands beside every configuration that this module writes."""


def gateway_config(
    folder: Path, certificate: Mapping[str, str] | None, *, secure_name: str = PROXY_NAME, **changes: Any
) -> dict[str, Any]:
    """Returns a configuration for the bed's gateway, with its cache below `folder`. `changes` replace whole
    sections."""
    config: dict[str, Any] = {
        "role": "edge",
        "link": {"rtt": "600ms", "down": "20mbit", "up": "5mbit"},
        "proxy": {"addresses": [PROXY, PROXY_RANGE], "secure_names": [secure_name] if certificate else []},
        "listen": {
            "http": ["0.0.0.0:80", "[::]:80"], "tls": ["0.0.0.0:443", "[::]:443"], "dns": ["0.0.0.0:53", "[::]:53"],
            "metrics": "127.0.0.1:9153", "intercept": "redirect",
        },
        "upstream": {"resolvers": [RESOLVER], "ports": [80, 443]},
        "rewrite": {"level": "safe", "target": "auto"},
        "dns": {"domains": [STEERED]},
        "cache": {"dir": str(folder / "cache"), "size": "256mib"},
    }  # fmt: skip
    if certificate:
        config["tls"] = {"terminate": [{"names": [secure_name], **certificate}]}
    return {**config, **changes}


ENGINE = os.environ.get("LONGHAUL_ENGINE", "native")
"""The engine that these tests run with: native, or wasm."""
IS_NATIVE = ENGINE == "native"


def write_config(folder: Path, config: Mapping[str, Any], steered: Sequence[str] = ()) -> Path:
    """Writes longhaul.yaml, with one section per line (JSON values are YAML), and its allowlist.

    `LONGHAUL_ENGINE` is the engine of a file that names none. Without it, that file has the default. The cache of an
    end of a pair lies below `folder`, unless `config` says something else. A section that is None is left out.
    """
    if config.get("role") in ("remote", "ground") and "cache" not in config:
        config = {**config, "cache": {"dir": str(folder / "cache"), "size": "256mib"}}
    if "engine" not in config and (engine := os.environ.get("LONGHAUL_ENGINE")):
        config = {**config, "engine": engine}
    config = {key: value for key, value in config.items() if value is not None}
    (folder / STEERED).write_text("".join(f"{name}\n" for name in steered))
    path = folder / "longhaul.yaml"
    path.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in config.items()))
    return path


def command(*arguments: str | Path, timeout_s: float = 60.0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs one of longhaul's commands to its end."""
    return subprocess.run(
        [str(built("longhaul")), *map(str, arguments)], capture_output=True, text=True, check=False,
        timeout=timeout_s, env={**os.environ, **environment},
    )  # fmt: skip


def derived(config: Path) -> dict[str, str]:
    """Returns the values that a configuration derives from its link, by name."""
    done = command("check", config, "--json")
    assert done.returncode == 0, done.stdout
    return {one["name"]: one["value"] for one in json.loads(done.stdout)["derived"]}


class Pep:
    """A running `longhaul run`. The end of the context stops it, and with it Envoy and CoreDNS."""

    def __init__(
        self,
        config: Path,
        folder: Path,
        namespace: Place | None = None,
        *,
        trusted: Path | None = None,
        options: Sequence[str | Path] = (),
        environment: Mapping[str, str] | None = None,
        program: Path | None = None,
        log_requests: bool = True,
        ready_timeout_s: float = 120.0,
    ) -> None:
        """`trusted` is the bundle of authorities that check the certificates of origins. `program` is the `longhaul` of
        another version."""
        self.config = config
        self.state = folder / "state"
        self._namespace = namespace
        self._log = folder / "longhaul.log"
        self._access_log = folder / "access.jsonl"
        self._ready_timeout_s = ready_timeout_s
        self._environment = {**({"SSL_CERT_FILE": str(trusted)} if trusted else {}), **(environment or {})}
        line: list[str | Path] = [
            program or built("longhaul"), "run", config, "--state", self.state, *options,
            *(["--access-log", self._access_log] if log_requests else []),
        ]  # fmt: skip
        self._command = namespace.inside(line) if namespace else line
        self._child: Child | None = None

    def __enter__(self) -> Self:
        self._child = Child(self._command, self._log, env=self._environment, stop_timeout_s=20.0)
        try:
            self._child.wait_for_output("ready ", self._ready_timeout_s, at_start=True)
        except BaseException:
            self._child.stop()
            raise
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.child.stop()

    @property
    def child(self) -> Child:
        """The process of `longhaul run`."""
        assert self._child, "not started"
        return self._child

    def output(self) -> str:
        """Returns its output so far."""
        return self.child.output()

    def requests(self) -> list[dict[str, Any]]:
        """Returns Envoy's access log so far."""
        if not self._access_log.exists():
            return []
        return [json.loads(line) for line in whole_lines(self._access_log)]

    def admin(self, path: str) -> str:
        """Sends a GET to Envoy's admin interface."""
        if self._admin_address:
            return self._curl(f"http://{self._admin_address}{path}")
        return ask(admin_socket(self.state), path)

    def metrics(self) -> dict[str, float]:
        """Returns Envoy's counters and gauges by their Prometheus names, with labels."""
        return parse_metrics(self.admin("/stats/prometheus"))

    def quit_envoy(self) -> None:
        """Ends Envoy, which `longhaul run` then starts again. It may end before it responds."""
        with suppress(OSError):
            ask(admin_socket(self.state), "/quitquitquit", "POST")

    @property
    def _admin_address(self) -> str | None:
        """The address of the admin interface of an earlier version, which has it on loopback. It reports it."""
        admin = json.loads((self.state / "run.json").read_text())["listen"]["admin"]
        return None if admin.startswith("/") else admin

    def page(self, url: str, *options: str) -> str:
        """Fetches a page where the box runs."""
        return self._curl(url, *options)

    def _curl(self, url: str, *options: str) -> str:
        line = ["curl", "--silent", "--show-error", "--fail", "--max-time", "30", *options, url]
        done = subprocess.run(
            self._namespace.inside(line) if self._namespace else line, capture_output=True, text=True, check=True
        )
        return done.stdout


def parse_metrics(text: str) -> dict[str, float]:
    """Parses Prometheus text into a table from `name{labels}` to value."""
    return {
        match[1]: float(match[2]) for match in re.finditer(r"^([^#\s][^\s{]*(?:\{[^}]*\})?) (\S+)$", text, re.MULTILINE)
    }
