"""The rpm in a database of its own, in a fresh Debian root: rpm installs, verifies, upgrades and erases it there.

No distribution stands behind that database, and nothing in it provides what the package needs. So the dependencies are
read, and not resolved.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from harness.host.artifacts import tool

from .packages import OUT, PREVIOUS, Packages
from .roots import Root

NEEDS = {"glibc >= 2.34", "shadow-utils", "ca-certificates"}


class Rpm:
    """rpm on the database of a root. The scripts of packages run inside the root."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self.run("--initdb")

    def run(self, *words: str | Path, check: bool = True) -> str:
        """Runs rpm. Returns what it says."""
        line = ["rpm", "--root", self.root.folder, *words]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=300)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, line))}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def version(self) -> str:
        """The version in the database, or nothing."""
        said = self.run("--query", "--queryformat", "%{VERSION}", "longhaul", check=False)
        return "" if "not installed" in said else said

    def changed(self) -> set[str]:
        """The files that differ from those of the package."""
        said = self.run("--verify", "--nodeps", "longhaul", check=False)
        return {line.split()[-1] for line in said.splitlines()}


def needs(package: Path) -> set[str]:
    """Returns the needs of a package, without the features of rpm itself."""
    line = ["rpm", "--query", "--package", "--requires", package]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    return {one for one in said.splitlines() if not one.startswith("rpmlib(")}


def previous(made: Packages, folder: Path) -> Path:
    """Makes the same rpm with an older version, by the recipe of the present one."""
    recipe = json.loads((OUT / "work" / made.arch / "rpm.json").read_text())
    older, out = folder / "rpm.json", folder / f"longhaul_{PREVIOUS}.rpm"
    older.write_text(json.dumps({**recipe, "version": PREVIOUS}))
    line = [tool("nfpm-*", "package") / "nfpm", "package", "--config", older, "--packager", "rpm", "--target", out]
    subprocess.run(line, check=True, capture_output=True)
    return out
