"""The package for arm64 on a Debian for arm64, under qemu: `make test-arm64`. Nothing in it runs on this machine's
processor, so a program that was built for the wrong one would not start."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness.boxes.filters import address, bootstrap, http_filter
from harness.clients.commands import Answer, Curl
from harness.delivery.chart import documents
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
EDGE, ADMIN, ORIGIN = 8080, 9901, ("127.78.0.1", 8180)
MODULE = "longhaul_filters.so"
SERVING = f"""\
role: edge
engine: native
link: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}
proxy: {{ addresses: [127.0.0.1] }}
listen: {{ http: "127.0.0.1:{EDGE}", tls: off, dns: "127.0.0.1:1053", metrics: "127.0.0.1:9153", intercept: none }}
upstream: {{ resolvers: [192.0.2.53] }}
rewrite: {{ level: safe, target: http }}
dns: {{ domains: [steered.txt] }}
cache: off
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
        for name in (*PROGRAMS, MODULE, "longhaul_multipath.so"):
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
    """qemu does not know the option of sockets for congestion control, so `longhaul run` cannot listen there. An Envoy
    with the filter alone can."""
    etc = root.path("/tmp/serving")
    etc.mkdir()
    (etc / "longhaul.yaml").write_text(SERVING)
    (etc / "steered.txt").write_text("example.org\n")
    assert "engine       native" in root.run("longhaul", "check", "/tmp/serving/longhaul.yaml").stdout
    as_gateway = ("--for", "envoy-gateway", "--engine", "native", "--out", "/tmp/gateway")
    root.run("longhaul", "render", "/tmp/serving/longhaul.yaml", *as_gateway)
    resources = documents(root.path("/tmp/gateway/native.yaml"))
    [module] = next(one["spec"]["dynamicModule"] for one in resources if one["kind"] == "EnvoyExtensionPolicy")
    filter = http_filter("edge", "url-rewrite", module["config"], Path(f"{LIBRARY}/{MODULE}"), "native")
    envoy = {
        **bootstrap("origin", address(ORIGIN[1], ORIGIN[0]), [filter], listen=EDGE),
        "admin": {"address": address(ADMIN)},
    }
    root.path("/tmp/envoy.json").write_text(json.dumps(envoy))
    host = {"address": ORIGIN[0], "special": True, "generate": True}
    manifest = Site(dns=["127.0.0.1:5353"], http_port=ORIGIN[1], hosts={WWW: host, IMG: host}).write(
        folder / "site.json"
    )
    curl = Curl(folder, namespace)

    def page(at: str, port: int) -> Answer:
        return curl.get(f"http://{at}:{port}/_/answer?host={IMG}", "-H", f"Host: {WWW}", timeout_s=30)

    line = (f"{LIBRARY}/envoy", "-c", "/tmp/envoy.json", "--concurrency", "1", "--disable-hot-restart", "-l", "error")
    with Origins(manifest, folder, namespace), root.running(*line):
        wait_for("a page", lambda: page("127.0.0.1", EDGE).status == 200, timeout_s=120, interval_s=1)
        served, direct = page("127.0.0.1", EDGE).body, page(*ORIGIN).body
        assert f"http://127.0.0.1:{EDGE}/{IMG}/".encode() in served != direct
        assert b"wasmcustom.longhaul_url_rewrite_" in curl.get(f"http://127.0.0.1:{ADMIN}/stats", timeout_s=30).body
