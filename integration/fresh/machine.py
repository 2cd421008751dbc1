"""A machine that has never seen the project: a clone of HEAD in an empty folder, with its own tool caches."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.host.artifacts import REPOSITORY, Missing, need_commands

NOWHERE = "http://127.0.0.1:9"
"""A port without a server (port 9, discard). Connections to it are refused at once, as if there were no network."""
OFFLINE = {
    "RUSTUP_DIST_SERVER": NOWHERE,
    "PIP_INDEX_URL": NOWHERE,
    "PIP_RETRIES": "1",
    "PIP_NO_CACHE_DIR": "1",
    "GOPROXY": NOWHERE,
    "CARGO_HTTP_PROXY": NOWHERE,
    "CARGO_NET_RETRY": "0",
}
"""The environment of a machine without a network, for tests that run without root."""
FROM_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "RUSTUP_TOOLCHAIN", "CARGO_TARGET_DIR", "V")
"""Variables that the `make` of the test run has put into the environment."""


class Machine:
    """A clone and its environment. `RUSTUP_AUTO_INSTALL=0` is set, as in many images."""

    def __init__(self, folder: Path, **environment: str) -> None:
        need_commands("git", "make")
        self.clone = folder / "clone"
        subprocess.run(["git", "clone", "--quiet", "--no-local", REPOSITORY, self.clone], check=True)
        ours = {name: value for name, value in os.environ.items() if not _of_the_project(name)}
        self.environment = {**ours, "RUSTUP_AUTO_INSTALL": "0", **environment}

    def run(
        self,
        *command: str | Path,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 300.0,
        prefix: Sequence[str | Path] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command in the clone. `prefix` is a command that runs it, such as `unshare -n`."""
        return subprocess.run(
            [*prefix, *command],
            cwd=self.clone,
            env={**self.environment, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def make(self, *targets: str, env: Mapping[str, str] | None = None, timeout_s: float = 300.0) -> str:
        """Runs make, which must succeed. Returns its output."""
        done = self.run("make", *targets, env=env, timeout_s=timeout_s)
        if done.returncode != 0 and "the download failed" in done.stderr:
            raise Missing("needs the Internet, to set up a fresh machine")
        assert done.returncode == 0, f"make {' '.join(targets)}:\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def failure(self, *targets: str, env: Mapping[str, str] | None = None, prefix: Sequence[str | Path] = ()) -> str:
        """Runs make, which must fail with one line besides make's own. Returns that line."""
        done = self.run("make", *targets, env=env, prefix=prefix)
        assert done.returncode != 0, done.stdout
        lines = [line for line in done.stderr.splitlines() if not line.startswith("make:")]
        assert len(lines) == 1, done.stderr
        return lines[0]


def _of_the_project(name: str) -> bool:
    return name.startswith("LONGHAUL_") or name in FROM_MAKE
