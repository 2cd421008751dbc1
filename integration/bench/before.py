"""The programs of an earlier commit, built once into target/bench/before, to measure beside the present ones."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from harness.host.artifacts import REPOSITORY, Missing, scratch

COMMIT = "1cb43ef"
"""Before compression followed the link, before stored text was compressed, with two hops for every request."""

FILTERS = {
    "url_rewrite_filter": "url_rewrite.wasm",
    "header_compression_filter": "header_compression.wasm",
    "bundling_filter": "bundling.wasm",
}


def programs_before() -> Path:
    """Returns a folder as `make build` fills it, of that commit. The first call takes as long as a build."""
    folder = scratch("bench") / "before"
    products = folder / "dist"
    if (products / "longhaul").exists():
        return products
    tree = _tree(COMMIT, folder / "tree")
    print(f"building commit {COMMIT} into {folder}, once", flush=True)
    build = ["cargo", "build", "--quiet", "--locked", "--release"]
    packages = [f"--package={name.replace('_', '-')}" for name in FILTERS]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder / "target")}
    host = ["--config", "profile.release.opt-level=1", "--package=longhaul"]
    for arguments in (host, ["--target=wasm32-wasip1", *packages]):
        subprocess.run([*build, *arguments], cwd=tree, env=environment, check=True)
    products.mkdir(exist_ok=True)
    for name, product in FILTERS.items():
        shutil.copy(folder / "target/wasm32-wasip1/release" / f"{name}.wasm", products / product)
    shutil.copy(folder / "target/release/longhaul", products / "longhaul")
    return products


def coredns_of(commit: str) -> Path:
    """Returns the CoreDNS of a commit, built as `make build` does. The first call takes as long as a build."""
    folder = scratch("bench") / f"coredns-{commit}"
    program = folder / "coredns"
    if program.exists():
        return program
    tree = _tree(commit, folder / "tree")
    print(f"building CoreDNS of commit {commit} into {folder}, once", flush=True)
    build = ["go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", str(program), "./cmd/coredns"]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    subprocess.run(build, cwd=tree / "coredns-plugin", env=environment, check=True)
    return program


def _tree(commit: str, tree: Path) -> Path:
    """Fills a folder with the files of a commit."""
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=REPOSITORY, capture_output=True, check=False)
    if archive.returncode:
        raise Missing(f"commit {commit} is not in this clone: fetch the whole history to compare with it")
    subprocess.run(["tar", "-x"], cwd=tree, input=archive.stdout, check=True)
    return tree
