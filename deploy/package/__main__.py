"""`python3 deploy/package`: .deb, .rpm, .tar.gz, checksums and a bill of materials from the output of `make build`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import archives
import components
import documents
from programs import ARCHES, collect, need_cross_compiler
from project import TARGET, Failed, native, version
from starts import start_each
from tree import Tree


def main() -> int:
    """Builds all packages, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arches", nargs="+", choices=list(ARCHES), default=[native()])
    parser.add_argument("--formats", nargs="*", choices=["deb", "rpm", "tar.gz"], default=["deb", "rpm", "tar.gz"])
    parser.add_argument("--dist", type=Path, default=TARGET / "dist", help="what `make build` left")
    parser.add_argument("--out", type=Path, default=TARGET / "package")
    parser.add_argument("--version", default=version(), help="another version than the workspace's, for a test")
    arguments = parser.parse_args()
    try:
        build(arguments)
    except Failed as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


def build(arguments: argparse.Namespace) -> None:
    """Makes all files, and prints a list of them."""
    for name in arguments.arches:
        need_cross_compiler(ARCHES[name])
    out, name = arguments.out, f"longhaul_{arguments.version}"
    out.mkdir(parents=True, exist_ok=True)
    work = TARGET / "package" / "work"
    # This machine's architecture first: its `longhaul` writes man pages and completions for all.
    arches = sorted(map(ARCHES.__getitem__, arguments.arches), key=lambda arch: arch.name != native())
    everything = [*components.crates(), *components.go_modules(), *components.envoy()]
    made: list[Path] = []
    bill = out / f"{name}.cdx.json"
    bill.write_text(documents.bill_of_materials(everything))
    notices = documents.notices(everything)
    for arch in arches:
        print(f"{arch.name}: collecting programs", flush=True)
        programs = collect(arch, arguments.dist, work / arch.name / "programs")
        print(f"{arch.name}: {start_each(arch, programs)}", flush=True)
        tree = Tree(work / arch.name / "tree")
        tree.build(programs, arguments.dist / "longhaul", notices, bill.read_text())
        for format in arguments.formats:
            print(f"{arch.name}: {format}", flush=True)
            target = out / f"{name}_{arch.name}.{format}"
            if format == "tar.gz":
                made.append(archives.tarball(tree.root, f"longhaul-{arguments.version}-linux-{arch.name}", target))
            else:
                made.append(archives.package(format, tree.root, arch, arguments.version, target))
    # The checksums cover all files of this version, also those of an earlier call for another architecture.
    archives.checksums(list(out.glob(f"{name}[_.]*")), out / "SHA256SUMS")
    for path in [*made, bill, out / "SHA256SUMS"]:
        print(f"{path.stat().st_size / 1e6:8.1f} MB  {path}")


if __name__ == "__main__":
    sys.exit(main())
