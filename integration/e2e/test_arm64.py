"""The package for arm64 on a Debian for arm64, under qemu: `make test-arm64`. Nothing in it runs on this machine's
processor, so a program that was built for the wrong one would not start."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.delivery.foreign import ARCH, foreign_debian
from harness.delivery.packages import OUT
from harness.host.artifacts import Missing
from harness.net.namespaces import Namespace

LIBRARY = "/usr/lib/longhaul"
CONFIG = "/etc/longhaul/longhaul.yaml"
OWN = """\
role: edge
link: { rtt: 600ms, down: 20mbit, up: 5mbit }
proxy: { addresses: [198.51.100.12] }
upstream: { resolvers: [192.0.2.53] }
"""
PROGRAMS = ("longhaul", "longhaul-images", "longhaul-objects", "coredns", "envoy")
FILTERS = {"name_budget.wasm", "url_rewrite.wasm", "header_compression.wasm", "bundling.wasm", "bundling_remote.wasm"}


def package() -> Path:
    found = sorted(OUT.glob(f"longhaul_*_{ARCH}.deb"))
    if not found:
        raise Missing(f"no package for {ARCH}: make package ARCHES={ARCH}")
    return found[-1]


@pytest.mark.arm64
def test_the_package_for_arm64_is_installed_and_its_programs_run(root_bed: None, folder: Path) -> None:  # noqa: ARG001
    with Namespace("box") as namespace, foreign_debian(folder / "root", namespace) as root:
        root.path("/tmp/package.deb").write_bytes(package().read_bytes())
        assert root.run("dpkg", "--print-architecture").stdout.strip() == ARCH
        # The root's own packages are extracted only, so dpkg knows none of them.
        said = root.run("dpkg", "--force-depends", "--install", "/tmp/package.deb").stdout
        assert "Then: systemctl enable --now longhaul" in said
        assert root.run("stat", "--format=%U %a", "/var/lib/longhaul").stdout == "longhaul 750\n"
        assert {path.name for path in root.path(LIBRARY).glob("*.wasm")} == FILTERS
        # The native module is built for amd64 alone, and `check` says so below.
        assert not root.path(f"{LIBRARY}/longhaul_filters.so").exists()
        for name in PROGRAMS:
            kind = subprocess.run(["file", "--brief", root.path(f"{LIBRARY}/{name}")], capture_output=True, text=True)
            assert "aarch64" in kind.stdout, (name, kind.stdout)
        version = root.run("longhaul", "--version").stdout
        assert [line.split()[0] for line in version.splitlines()] == ["longhaul", "Envoy", "CoreDNS"], version

        assert root.run("longhaul", "check", CONFIG, check=False).returncode == 2
        root.path(CONFIG).write_text(OWN)
        assert "url-rewrite" in root.run("longhaul", "filters").stdout
        root.run("longhaul", "check", CONFIG)
        root.run("longhaul", "render", CONFIG, "--out", "/tmp/rendered")
        # Envoy loads each module of the file, and compiles it for its own processor.
        bootstrap = "/tmp/rendered/bootstrap.yaml"
        root.run(f"{LIBRARY}/envoy", "--mode", "validate", "--log-level", "error", "-c", bootstrap)
        native = f"(cat {CONFIG}; echo 'engine: native') > /tmp/native.yaml; longhaul check /tmp/native.yaml"
        said = root.run("sh", "-c", native).stdout
        assert "`engine: native` cannot run here" in said, said

        root.run("dpkg", "--force-depends", "--purge", "longhaul")
        assert not root.path(LIBRARY).exists()
