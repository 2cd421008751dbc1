"""The packages and the image under test. The programs of `make package` and `make image` build them once per run, also
if several processes run the tests."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.host.artifacts import REPOSITORY, built, dist, need_commands, need_root, scratch

PROGRAMS = REPOSITORY / "deploy" / "package"
OUT = REPOSITORY / "target" / "package"
STORE = REPOSITORY / "target" / "image" / "storage"
PREVIOUS = "0.0.1"
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex
"""The name of this run of the tests, in all of its processes."""


@dataclass(frozen=True)
class Packages:
    """The products of `make package` for this machine's architecture."""

    version: str
    arch: str

    def file(self, format: str) -> Path:
        """Returns the path of the package in one format."""
        return OUT / f"longhaul_{self.version}_{self.arch}.{format}"

    @property
    def tree(self) -> Path:
        """The files of the package in a folder."""
        return OUT / "work" / self.arch / "tree"

    def previous(self, folder: Path) -> Path:
        """Makes the same package with an older version."""
        unpacked, made = folder / "previous", folder / "previous.deb"
        subprocess.run(["dpkg-deb", "-R", self.file("deb"), unpacked], check=True)
        control = unpacked / "DEBIAN" / "control"
        control.write_text(control.read_text().replace(f"Version: {self.version}", f"Version: {PREVIOUS}"))
        subprocess.run(["dpkg-deb", "-Znone", "-b", unpacked, made], check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(unpacked)
        return made


@cache
def packages() -> Packages:
    """Builds the packages."""
    need_commands("go", "strip", "dpkg-deb")
    for name in ("longhaul", "longhaul-images", "longhaul-objects", "coredns", "envoy", "url_rewrite.wasm"):
        built(name)
    arch = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    _once_per_run("packages", PROGRAMS, "--dist", dist(), "--arches", arch)
    [bill] = OUT.glob("longhaul_*.cdx.json")
    return Packages(json.loads(bill.read_text())["metadata"]["component"]["version"], arch)


@dataclass(frozen=True)
class Image:
    """One target of the image, in the store that the build uses."""

    name: str
    megabytes: int
    """Size of all layers after decompression."""

    @contextmanager
    def unpacked(self) -> Iterator[Path]:
        """Mounts its root as a writable folder."""
        container = _buildah("from", "--pull-never", self.name)
        try:
            yield Path(_buildah("mount", container))
        finally:
            _buildah("rm", container)


@cache
def images() -> dict[str, Image]:
    """Builds the image. Returns its targets by name."""
    need_root()
    need_commands("buildah")
    base()
    said = _once_per_run("images", PROGRAMS / "image.py", "--tree", packages().tree, "--no-archives")
    found = [Image(name, int(size)) for name, size in re.findall(r"^(\S+): (\d+) MB$", said, re.MULTILINE)]
    return {"host" if image.name.endswith("-host") else "plain": image for image in found}


def _buildah(*arguments: str) -> str:
    store = STORE / "root", "--runroot", STORE / "run", "--storage-driver", "vfs"
    line = ["buildah", "--root", *map(str, store), *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(line)}: {done.stderr}")
    return done.stdout.strip()


@cache
def base() -> Path:
    """Makes the archive of a fresh Debian root."""
    need_root()
    need_commands("mmdebstrap")
    return Path(_once_per_run("base", PROGRAMS / "image.py", "--base").strip())


def _once_per_run(product: str, *arguments: str | Path) -> str:
    """Runs a program unless another process of this run has. Returns its output in either case."""
    with (scratch("test") / f"{product}.made").open("a+") as made:
        fcntl.flock(made, fcntl.LOCK_EX)
        made.seek(0)
        run, _, said = made.read().partition("\n")
        if run != RUN:
            said = _python(*arguments)
            made.truncate(0)
            made.write(f"{RUN}\n{said}")
        return said


def _python(*arguments: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=900
    )
    if done.returncode != 0:
        raise RuntimeError(f"{arguments}: {done.stderr}")
    return done.stdout
