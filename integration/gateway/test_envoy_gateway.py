"""Envoy Gateway with the resources that `longhaul render --for envoy-gateway` writes: `make test-gateway`.

The patch and the native module are in force in its Envoy, which is the one of this repository. In standalone mode, its
Envoy cannot load the wasm module of an EnvoyExtensionPolicy: the address of the module needs a certificate that only a
cluster has. That Envoy Gateway pulls the image and accepts the policy is tested.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.boxes.pep import Pep, command, write_config
from harness.clients.commands import Answer, Curl
from harness.delivery.chart import documents
from harness.delivery.envoy_gateway import ENVOY_VERSION, envoy_gateway, on_the_host, site
from harness.host.artifacts import REPOSITORY, built, dist, need_commands, need_root, tool
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.net.namespaces import Namespace
from harness.origins.program import Origins, Site

WWW, IMG = "www.example.org", "img.example.org"
PAGE = f"/_/answer?host={IMG}"
ORIGIN = ("127.78.0.1", 8180)
EDGE, PATCHED, EXTENDED, REGISTRY = 8080, 8888, 8889, 5000


MODULES = {
    "/longhaul/plugin.wasm": "url_rewrite.wasm",
    "/longhaul/usr/lib/longhaul/longhaul_filters.so": "longhaul_filters.so",
}
"""The files of this build, by their paths in the images."""


def edge(folder: Path) -> Path:
    """Writes the file of an edge without a cache, as the gateway has none."""
    config = {
        "role": "edge",
        "link": {"rtt": "600ms", "down": "20mbit", "up": "5mbit"},
        "proxy": {"addresses": ["127.0.0.1"]},
        "listen": {
            "http": f"127.0.0.1:{EDGE}", "tls": "off", "dns": "127.0.0.1:1053",
            "metrics": "127.0.0.1:9153", "intercept": "none",
        },
        "upstream": {
            "resolvers": ["127.0.0.1:5353"],
            "allow_private": ["127.78.0.0/24"],
            "map": {WWW: f"{ORIGIN[0]}:{ORIGIN[1]}"},
        },
        "rewrite": {"level": "safe", "target": "http"},
        "dns": {"domains": ["steered.txt"]},
        "cache": False,
    }  # fmt: skip
    etc = folder / "etc"
    etc.mkdir()
    return write_config(etc, config, steered=["example.org"])


def rendered(config: Path, out: Path, *options: str) -> dict[str, list[dict[str, Any]]]:
    """Renders the resources. Returns those of each file."""
    done = command("render", config, "--for", "envoy-gateway", "--out", out, *options)
    assert done.returncode == 0, done.stderr
    return {path.name: documents(path) for path in out.iterdir()}


def on_this_machine(resources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the resources with the Envoy and the module of this build."""
    text = json.dumps(resources)
    for path, file in MODULES.items():
        text = text.replace(json.dumps(path), json.dumps(str(built(file))))
    moved = json.loads(text)
    return [on_the_host(one) if one["kind"] == "EnvoyProxy" else one for one in moved]


@contextmanager
def origins(folder: Path, inside: Namespace) -> Iterator[None]:
    """The site behind both."""
    host = {"address": ORIGIN[0], "special": True, "generate": True}
    manifest = Site(dns=["127.0.0.1:5353"], http_port=ORIGIN[1], hosts={WWW: host, IMG: host})
    with Origins(manifest.write(folder / "site.json"), folder, inside):
        yield


def http_filters(curl: Curl, inside: Namespace) -> list[str]:
    """Returns the names of the filters of the site's listener, from the admin interface of Envoy, which is on any
    port."""
    ports = [line.split()[3].rpartition(":")[2] for line in inside.run("ss", "-Hltn").stdout.splitlines()]
    for port in ports:
        dump = curl.get(f"http://127.0.0.1:{port}/config_dump", timeout_s=2)
        if dump.status == 200 and b'"configs"' in dump.body:
            chains = [[one["name"] for one in chain] for chain in values(json.loads(dump.body), "http_filters")]
            return next((chain for chain in chains if any("wasm" in name for name in chain)), [])
    return []


def values(tree: Any, key: str) -> Iterator[Any]:
    """Returns all values of a key in a tree of objects and lists."""
    if isinstance(tree, dict):
        if key in tree:
            yield tree[key]
        tree = list(tree.values())
    if isinstance(tree, list):
        for part in tree:
            yield from values(part, key)


@pytest.mark.parametrize(("engine", "file"), [("wasm", "patch.yaml"), ("native", "native.yaml")])
def test_the_gateways_page_equals_the_edges(folder: Path, engine: str, file: str) -> None:
    need_root()
    need_commands("curl")
    config = edge(folder)
    files = rendered(config, folder / "out", "--gateway", "sites/web", "--engine", engine)
    resources = on_this_machine(files[file])
    assert engine == "wasm" or f"envoy:distroless-v{ENVOY_VERSION}" in json.dumps(files[file])
    with (
        Namespace("gateway") as inside,
        origins(folder, inside),
        Pep(config, folder, inside),
        envoy_gateway(folder / "eg", inside, [*site("sites", "web", PATCHED, WWW, ORIGIN), *resources]) as control,
    ):
        curl = Curl(folder, inside)

        def page(port: int, *options: str) -> Answer:
            return curl.get(f"http://127.0.0.1:{port}{PAGE}", "-H", f"Host: {WWW}", *options)

        wait_for("the page behind Envoy Gateway", lambda: page(PATCHED).status == 200, timeout_s=120)
        assert control.process.poll() is None
        ours, theirs = page(EDGE), page(PATCHED)
        direct = curl.get(f"http://{ORIGIN[0]}:{ORIGIN[1]}{PAGE}", "-H", f"Host: {WWW}")
        assert f"http://127.0.0.1:{EDGE}/{IMG}/".encode() in ours.body != direct.body
        assert theirs.body == ours.body
        # The filter stands behind the compressor: it reads the page, which the gateway compresses afterwards.
        compressed = page(PATCHED, "-H", "Accept-Encoding: gzip")
        assert compressed.header("content-encoding") == "gzip"
        assert gzip.decompress(compressed.body) == ours.body


def test_envoy_gateway_pulls_the_image_of_the_extension(folder: Path) -> None:
    need_root()
    need_commands("buildah")
    program = REPOSITORY / "deploy" / "package" / "wasm_image.py"
    subprocess.run([sys.executable, program, "--dist", dist(), "--out", folder], check=True, timeout=120)
    [archive] = folder.glob("*.oci.tar")
    layout = folder / "layout"
    layout.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", layout], check=True)
    image = f"localhost:{REGISTRY}/longhaul/url-rewrite:test"
    options = ("--gateway", "sites/web", "--image", image)
    extension = on_this_machine(rendered(edge(folder), folder / "out", *options)["extension.yaml"])
    with Namespace("gateway") as inside:
        registry = inside.inside([tool("registry-*", "test-gateway"), "-port", str(REGISTRY)])
        with Child(registry, folder / "registry.log") as store, origins(folder, inside):
            store.wait_for_output("serving on port")
            inside.run(tool("crane-*", "test-gateway"), "push", layout, image)
            resources = [*site("sites", "web", EXTENDED, WWW, ORIGIN), *extension]
            with envoy_gateway(folder / "eg", inside, resources):
                expected = hashlib.sha256(built("url_rewrite.wasm").read_bytes()).hexdigest()
                pulled = folder / "eg" / "home" / ".eg" / "wasm"

                def digests() -> set[str]:
                    files = [one for one in pulled.rglob("*") if one.is_file()]
                    return {hashlib.sha256(one.read_bytes()).hexdigest() for one in files}

                wait_for("the module", lambda: expected in digests(), timeout_s=120)
                filters = wait_for("the listener", lambda: http_filters(Curl(folder, inside), inside), timeout_s=60)
    kinds = [name.removeprefix("envoy.filters.http.").split(".")[0].split("/")[0] for name in filters]
    # A response passes them from right to left: the filter reads the page before it is compressed.
    assert kinds == ["compressor", "compressor", "wasm", "router"]
