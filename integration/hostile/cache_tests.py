"""http-tests/cache-tests against an edge. LONGHAUL_CACHE_TESTS names a checkout with its packages installed.

The suite is not part of this repository. Its results by test id are written beside the figures.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.boxes.pep import gateway_config
from harness.host.artifacts import Missing
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.net.namespaces import Namespace
from hostile.beds import edge, records

NAME = "cache-tests.example.org"
ADDRESS, PORT = "203.0.113.201", 8000
PLAIN_FIELDS = ["test-id", "test-name", "req-num"]
"""The suite's own request fields. Without this list every request that has them would bypass the cache."""

EXPLAINED = Path(__file__).with_name("cache_tests.toml")
"""The tests that do not pass, by the reason."""

IDS = """
import tests from '%s/tests/index.mjs'
console.log(JSON.stringify(Object.fromEntries(
  tests.flatMap(suite => suite.tests.map(test => [test.id, test.kind || 'required'])))))
"""


@dataclass(frozen=True)
class Results:
    """The suite's results by id: True, or a kind of failure and a sentence."""

    by_id: dict[str, Any]
    kinds: dict[str, str]

    @property
    def passed(self) -> int:
        """Returns the number of tests that passed."""
        return sum(result is True for result in self.by_id.values())

    def unexplained(self) -> list[str]:
        """Returns the tests that do not pass without a reason, and those that pass and have one."""
        reasons = tomllib.loads(EXPLAINED.read_text())["reason"]
        explained = {name for reason in reasons for name in (*reason.get("tests", []), *reason.get("squid", []))}
        return sorted(explained ^ {name for name, result in self.by_id.items() if result is not True})

    @property
    def wrong_reuse(self) -> list[str]:
        """Returns the tests that forbid reuse and in which a response came from the cache anyway."""
        return [
            name
            for name, result in self.by_id.items()
            if self.kinds.get(name) == "required" and result is not True and "comes from cache" in str(result[1])
        ]


def run() -> Results:
    """Runs all tests through an edge that knows the suite's own fields."""
    checkout = _checkout()
    with tempfile.TemporaryDirectory(prefix="longhaul-cache-tests-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        plain = gateway_config(folder, None)
        changes = {
            "cache": {**plain["cache"], "plain_fields": PLAIN_FIELDS},
            "upstream": {**plain["upstream"], "map": {NAME: f"{ADDRESS}:{PORT}"}},
        }
        with records({NAME: ADDRESS}), edge(folder, **changes) as target:
            server = Child(
                target.internet.inside(["node", checkout / "test-engine/server/server.mjs"]),
                folder / "server.log",
                cwd=checkout,
                env={
                    "npm_config_protocol": "http",
                    "npm_config_port": str(PORT),
                    "npm_config_pidfile": f"{folder}/pid",
                },
            )
            try:
                wait_for("the suite's server", lambda: target.get("/", host=NAME).status, 30, 0.2)
                found = _client(target.clients, checkout)
            finally:
                server.stop()
    kinds = subprocess.run(
        ["node", "--input-type=module", "-e", IDS % checkout], capture_output=True, text=True, check=True, cwd=checkout
    )
    return Results(found, json.loads(kinds.stdout))


def _checkout() -> Path:
    named = os.environ.get("LONGHAUL_CACHE_TESTS")
    if not named:
        raise Missing("LONGHAUL_CACHE_TESTS names no checkout of http-tests/cache-tests")
    path = Path(named).resolve()
    if not (path / "test-engine/cli.mjs").exists():
        raise Missing(f"{path} is no checkout of http-tests/cache-tests")
    if shutil.which("node") is None:
        raise Missing("node is not installed")
    return path


def _client(clients: Namespace, checkout: Path) -> dict[str, Any]:
    line = [
        "env",
        f"npm_config_base=http://{NAME}",
        "npm_package_config_id=",
        "node",
        "--no-warnings",
        "test-engine/cli.mjs",
    ]
    done = subprocess.run(clients.inside(line), capture_output=True, text=True, cwd=checkout, timeout=900, check=False)
    if done.returncode:
        raise RuntimeError(f"the suite ended with {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(done.stdout[done.stdout.index("{") :])
