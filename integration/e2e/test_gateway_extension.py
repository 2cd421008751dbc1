"""url-rewrite for other people's gateways: the OCI image, and the configuration of the examples in a real Envoy."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import re
import subprocess
import sys
import tarfile
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.artifacts import REPOSITORY, built, dist, need_commands, need_root
from harness.kubernetes import documents
from harness.ports import free_ports
from harness.processes import Child
from harness.waiting import wait_for

GATEWAY = REPOSITORY / "deploy" / "gateway"
PAGE = b'<!doctype html><title>A page</title><img src="http://images.example.org/a.png"><img src="http://bank.example/b.png">'


def test_the_image_has_one_layer_with_the_filter_as_plugin_wasm(folder: Path) -> None:
    need_root()
    need_commands("buildah")
    filter = built("url_rewrite.wasm")
    program = REPOSITORY / "deploy" / "package" / "wasm_image.py"
    subprocess.run([sys.executable, program, "--dist", dist(), "--out", folder], check=True, timeout=120)
    [archive] = folder.glob("*.oci.tar")
    with tarfile.open(archive) as files:

        def read(name: str) -> bytes:
            found = files.extractfile(name)
            assert found, name
            return found.read()

        def blob(digest: str) -> bytes:
            return read(f"blobs/{digest.replace(':', '/')}")

        [listed] = json.loads(read("index.json"))["manifests"]
        manifest = json.loads(blob(listed["digest"]))
        assert manifest["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
        [layer] = manifest["layers"]
        assert layer["mediaType"] == "application/vnd.oci.image.layer.v1.tar+gzip"
        with tarfile.open(fileobj=io.BytesIO(blob(layer["digest"])), mode="r:gz") as contents:
            assert [one.name.lstrip("/") for one in contents if one.isfile()] == ["plugin.wasm"]
            plugin = contents.extractfile(next(one for one in contents if one.isfile()))
            assert plugin
            assert hashlib.sha256(plugin.read()).digest() == hashlib.sha256(filter.read_bytes()).digest()


def configurations() -> dict[str, Any]:
    """The filter's configuration in each example, by file."""
    [policy] = documents(GATEWAY / "envoy-gateway.yaml")
    [plugin] = documents(GATEWAY / "istio.yaml")
    return {"envoy-gateway": policy["spec"]["wasm"][0]["config"], "istio": plugin["spec"]["pluginConfig"]}


class Site(http.server.BaseHTTPRequestHandler):
    """Serves the page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: object) -> None:
        """Is silent."""


@contextmanager
def site(port: int) -> Iterator[None]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Site)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def gateway(configuration: Any, port: int, origin: int) -> dict[str, Any]:
    """An Envoy as a gateway configures it: the filter before the router, and one site behind it."""
    types = "type.googleapis.com/envoy.extensions.filters"
    wasm = {
        "@type": f"{types}.http.wasm.v3.Wasm",
        "config": {
            "name": "url-rewrite", "root_id": "url-rewrite",
            "configuration": {
                "@type": "type.googleapis.com/google.protobuf.StringValue", "value": json.dumps(configuration)
            },
            "vm_config": {
                "runtime": "envoy.wasm.runtime.v8", "code": {"local": {"filename": str(built("url_rewrite.wasm"))}}
            },
        },
    }  # fmt: skip
    manager = {
        "@type": f"{types}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "gateway",
        "route_config": {"virtual_hosts": [
            {"name": "site", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "site"}}]}
        ]},
        "http_filters": [
            {"name": "url-rewrite", "typed_config": wasm},
            {"name": "router", "typed_config": {"@type": f"{types}.http.router.v3.Router"}},
        ],
    }  # fmt: skip

    def at(number: int) -> dict[str, Any]:
        return {"socket_address": {"address": "127.0.0.1", "port_value": number}}

    endpoint = {"lb_endpoints": [{"endpoint": {"address": at(origin)}}]}
    chain = {"filters": [{"name": "http", "typed_config": manager}]}
    return {"static_resources": {
        "listeners": [{"name": "gateway", "address": at(port), "filter_chains": [chain]}],
        "clusters": [{"name": "site", "load_assignment": {"cluster_name": "site", "endpoints": [endpoint]}}],
    }}  # fmt: skip


def test_pages_behind_a_gateway_point_to_the_edge(folder: Path) -> None:
    # That of the other example is the same.
    configuration = configurations()["istio"]
    port, origin = free_ports(2)
    file = folder / "envoy.json"
    file.write_text(json.dumps(gateway(configuration, port, origin)))
    options = ["--config-path", file, "--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"]

    def page() -> bytes:
        try:
            request = urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"Host": "www.site.example"})
            with urllib.request.urlopen(request, timeout=5) as response:
                return response.read()
        except OSError:
            return b""

    with site(origin), Child([built("envoy"), *options], folder / "envoy.log"):
        got = wait_for("the page", page)
    secure = re.findall(rb'src="([^"]*)"', got)
    assert secure == [b"https://pep.example.net/images.example.org/a.png", b"http://bank.example/b.png"]


def test_both_examples_configure_the_filter_alike_and_for_no_requests_to_the_gateway() -> None:
    first, second = configurations().values()
    assert first == second
    # Prefetching and inlining need a cache behind the filter, which a gateway lacks.
    assert not first.keys() & {"prefetch", "inline"}
