"""The package for arm64 on a Debian for arm64, under qemu: `make test-arm64`. Nothing in it runs on this machine's
processor, so a program that was built for the wrong one would not start."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.clients.commands import Answer, Curl
from harness.delivery.foreign import ARCH, Foreign, foreign_debian
from harness.delivery.packages import OUT
from harness.host.artifacts import Missing
from harness.host.waiting import wait_for
from harness.net.namespaces import Namespace
from harness.origins.program import Origins, Site

LIBRARY = "/usr/lib/longhaul"
CONFIG = "/etc/longhaul/longhaul.yaml"
OWN = """\
role: edge
link: { rtt: 600ms, down: 20mbit, up: 5mbit }
proxy: { addresses: [198.51.100.12] }
upstream: { resolvers: [192.0.2.53] }
"""
WWW, IMG = "www.example.org", "img.example.org"
EDGE, ORIGIN, NAMES = "127.0.0.1:8080", ("127.78.0.1", 8180), "127.0.0.1:5353"
SERVING = f"""\
role: edge
engine: native
link: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}
proxy: {{ addresses: [127.0.0.1] }}
listen: {{ http: "{EDGE}", tls: off, dns: "127.0.0.1:1053", metrics: "127.0.0.1:9153", intercept: none }}
upstream: {{ resolvers: ["{NAMES}"], allow_private: [127.78.0.0/24], map: {{ {WWW}: "{ORIGIN[0]}:{ORIGIN[1]}" }} }}
rewrite: {{ level: safe, target: http }}
dns: {{ domains: [steered.txt] }}
cache: off
workers: 1
"""
"""An edge whose clients are on the same machine."""
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
        for name in (*PROGRAMS, "longhaul_filters.so", "longhaul_multipath.so"):
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

        _serves_a_page_with_native_filters(root, namespace, folder)

        root.run("dpkg", "--force-depends", "--purge", "longhaul")
        assert not root.path(LIBRARY).exists()


def _serves_a_page_with_native_filters(root: Foreign, namespace: Namespace, folder: Path) -> None:
    etc = root.path("/tmp/serving")
    etc.mkdir()
    (etc / "longhaul.yaml").write_text(SERVING)
    (etc / "steered.txt").write_text("example.org\n")
    assert "native" in root.run("longhaul", "check", "/tmp/serving/longhaul.yaml").stdout
    host = {"address": ORIGIN[0], "special": True, "generate": True}
    manifest = Site(dns=[NAMES], http_port=ORIGIN[1], hosts={WWW: host, IMG: host}).write(folder / "site.json")
    curl = Curl(folder, namespace)

    def page(at: str) -> Answer:
        return curl.get(f"http://{at}/_/answer?host={IMG}", "-H", f"Host: {WWW}", timeout_s=30)

    line = ("longhaul", "run", "/tmp/serving/longhaul.yaml", "--state", "/tmp/state")
    with Origins(manifest, folder, namespace), root.running(*line):
        wait_for("a page", lambda: page(EDGE).status == 200, timeout_s=120, interval_s=2)
        served, direct = page(EDGE).body, page(f"{ORIGIN[0]}:{ORIGIN[1]}").body
        assert f"http://{EDGE}/{IMG}/".encode() in served != direct
        metrics = curl.get("http://127.0.0.1:9153/metrics", timeout_s=30).body
        assert b"envoy_wasmcustom_longhaul_url_rewrite" in metrics
