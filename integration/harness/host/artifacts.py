"""Finds the programs under test, and names what this machine lacks: each absence is one sentence, the reason of a
skip."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
TOOLS = REPOSITORY / "target" / "tools"


class Missing(Exception):  # noqa: N818 - it reads as what happened
    """Something is absent on this machine. The text is the reason for which a test is skipped."""


def dist() -> Path:
    """Returns the folder that `make build` fills."""
    return Path(os.environ.get("LONGHAUL_DIST", REPOSITORY / "target" / "dist"))


def built(name: str) -> Path:
    """Returns the path of a product of `make build`."""
    path = dist() / name
    if not path.exists():
        raise Missing(f"{name} is not in {dist()}: run `make build` first")
    return path


def tool(pattern: str, made_by: str) -> Path:
    """Returns the path of a program or folder in target/tools, where the make target `made_by` puts it."""
    for path in sorted(TOOLS.glob(pattern)):
        return path
    raise Missing(f"no {pattern} in {TOOLS}: run `make {made_by}`")


def corpora() -> Path:
    """Returns the folder of saved pages. It is not part of the repository: the pages belong to their publishers."""
    named = os.environ.get("LONGHAUL_CORPORA")
    path = Path(named) if named else REPOSITORY.parent / "shared" / "corpora"
    if not (path / "html").is_dir():
        raise Missing(f"no saved pages in {path}: set LONGHAUL_CORPORA to the folder that has html/")
    return path


def scratch(name: str) -> Path:
    """Makes a folder below target/ for the products of a run that people look at."""
    path = REPOSITORY / "target" / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def need_root() -> None:
    """Raises `Missing` without root, which namespaces, TUN devices and redirect rules need."""
    if os.geteuid() != 0:
        raise Missing("needs root: network namespaces, TUN devices and redirect rules")


def need_commands(*commands: str) -> None:
    """Raises `Missing` if a command is absent. Names the Debian package that has it."""
    packages = {
        "ip": "iproute2", "nft": "nftables", "curl": "curl", "dig": "dnsutils", "chromium": "chromium",
        "certutil": "libnss3-tools", "nsenter": "util-linux", "unshare": "util-linux", "sysctl": "procps",
        "strip": "binutils", "rpm2cpio": "rpm", "apache2": "apache2-bin", "aria2c": "aria2",
        "java": "default-jdk-headless", "javac": "default-jdk-headless", "apt-get": "apt", "getent": "libc-bin",
    }  # fmt: skip
    for command in commands:
        if shutil.which(command) is None:
            raise Missing(f"needs the command {command} (Debian package {packages.get(command, command)})")


def list_skip(reason: str) -> None:
    """Writes the reason of a skip where `make test` lists it. LONGHAUL_SKIPS names the file."""
    if listed := os.environ.get("LONGHAUL_SKIPS"):
        Path(listed).parent.mkdir(parents=True, exist_ok=True)
        with Path(listed).open("a", encoding="utf-8") as out:
            out.write(f"{reason}\n")
