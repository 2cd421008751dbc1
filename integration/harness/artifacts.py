"""Where the things under test are, and what this machine lacks: each absence is one sentence, the reason of a skip."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


class Missing(Exception):  # noqa: N818 - it reads as what happened
    """Something this machine does not have; the text is the reason a test gives for not running."""


def dist() -> Path:
    """The folder `make build` fills."""
    return Path(os.environ.get("LONGHAUL_DIST", REPOSITORY / "target" / "dist"))


def built(name: str) -> Path:
    """The path of something `make build` makes."""
    path = dist() / name
    if not path.exists():
        raise Missing(f"{name} is not in {dist()}: run `make build` first")
    return path


def corpora() -> Path:
    """The folder of saved pages; it is not part of the repository, as the pages belong to their publishers."""
    named = os.environ.get("LONGHAUL_CORPORA")
    path = Path(named) if named else REPOSITORY.parent / "shared" / "corpora"
    if not (path / "html").is_dir():
        raise Missing(f"no saved pages in {path}: set LONGHAUL_CORPORA to the folder that has html/")
    return path


def scratch(name: str) -> Path:
    """A folder below target/ for what a run leaves for people to look at."""
    path = REPOSITORY / "target" / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def need_root() -> None:
    """Namespaces, TUN devices and redirect rules are root's."""
    if os.geteuid() != 0:
        raise Missing("needs root: network namespaces, TUN devices and redirect rules")


def need_commands(*commands: str) -> None:
    """Commands of Debian packages that the languages' own tools do not bring."""
    packages = {
        "ip": "iproute2", "nft": "nftables", "curl": "curl", "dig": "dnsutils", "chromium": "chromium",
        "certutil": "libnss3-tools", "nsenter": "util-linux", "unshare": "util-linux", "sysctl": "procps",
        "strip": "binutils", "rpm2cpio": "rpm",
    }  # fmt: skip
    for command in commands:
        if shutil.which(command) is None:
            raise Missing(f"needs the command {command} (Debian package {packages.get(command, command)})")
