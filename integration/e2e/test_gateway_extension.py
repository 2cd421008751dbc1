"""url-rewrite for other people's gateways: the OCI image, and the rendered resources in a real Envoy."""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.delivery.chart import documents
from harness.host.artifacts import REPOSITORY, built, dist, need_commands, need_root
from harness.host.ports import free_ports
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.origins.web import Response, web_server

GATEWAY = REPOSITORY / "deploy" / "gateway"
REFUSED_CALL = "restricted proxy-wasm capability"
"""The words of Envoy about a call that is not on the list."""

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


def rendered(plane: str, file: str, kind: str) -> Any:
    """Returns the specification of a resource that `longhaul render --for` wrote (`tests/gateway.rs` of *longhaul*)."""
    [found] = [one for one in documents(GATEWAY / plane / file) if one["kind"] == kind]
    return found["spec"]


def configurations() -> dict[str, Any]:
    """The filter's configuration in each form, by name."""
    extension = rendered("envoy-gateway", "extension.yaml", "EnvoyExtensionPolicy")
    plugin = patched_filter()["typed_config"]["config"]
    return {
        "extension": extension["wasm"][0]["config"],
        "patch": json.loads(plugin["configuration"]["value"]),
        "istio": rendered("istio", "wasm-plugin.yaml", "WasmPlugin")["pluginConfig"],
    }


def patched_filter() -> Any:
    """The filter as the EnvoyPatchPolicy puts it into Envoy's listener, with the module of this build."""
    [patch] = rendered("envoy-gateway", "patch.yaml", "EnvoyPatchPolicy")["jsonPatches"]
    added = patch["operation"]["value"]
    code = added["typed_config"]["config"]["vm_config"]["code"]["local"]
    assert code["filename"] == "/longhaul/plugin.wasm"
    code["filename"] = str(built("url_rewrite.wasm"))
    return added


def allowed_calls(added: Any) -> dict[str, Any]:
    """The calls that a filter may use."""
    return added["typed_config"]["config"]["capability_restriction_config"]["allowed_capabilities"]


def gateway(added: Any, port: int, origin: int) -> dict[str, Any]:
    """An Envoy as a gateway configures it: the filter before the router, and one site behind it."""
    types = "type.googleapis.com/envoy.extensions.filters"
    manager = {
        "@type": f"{types}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "gateway",
        "route_config": {"virtual_hosts": [
            {"name": "site", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "site"}}]}
        ]},
        "http_filters": [added, {"name": "router", "typed_config": {"@type": f"{types}.http.router.v3.Router"}}],
    }  # fmt: skip

    def at(number: int) -> dict[str, Any]:
        return {"socket_address": {"address": "127.0.0.1", "port_value": number}}

    endpoint = {"lb_endpoints": [{"endpoint": {"address": at(origin)}}]}
    chain = {"filters": [{"name": "http", "typed_config": manager}]}
    return {"static_resources": {
        "listeners": [{"name": "gateway", "address": at(port), "filter_chains": [chain]}],
        "clusters": [{"name": "site", "load_assignment": {"cluster_name": "site", "endpoints": [endpoint]}}],
    }}  # fmt: skip


@contextmanager
def page_behind(added: Any, folder: Path) -> Iterator[tuple[bytes, Child]]:
    """Starts a gateway with the filter. Yields the page that a client gets, and Envoy."""
    [port] = free_ports(1)
    with web_server(lambda _: Response(PAGE, "text/html")) as origin:
        file = folder / "envoy.json"
        file.write_text(json.dumps(gateway(added, port, origin)))
        options = ["--config-path", file, "--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"]

        def page() -> bytes:
            try:
                request = urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"Host": "www.site.example"})
                with urllib.request.urlopen(request, timeout=5) as response:
                    return response.read()
            except OSError:
                return b""

        with Child([built("envoy"), *options], folder / "envoy.log") as envoy:
            yield wait_for("the page", page), envoy


def urls(page: bytes) -> list[bytes]:
    """The URLs of the pictures of a page."""
    return re.findall(rb'src="([^"]*)"', page)


def test_pages_behind_a_gateway_point_to_the_edge(folder: Path) -> None:
    with page_behind(patched_filter(), folder) as (page, envoy):
        assert urls(page) == [b"https://pep.example.net/images.example.org/a.png", b"http://bank.example/b.png"]
        # The calls of the rendered list are enough.
        assert REFUSED_CALL not in envoy.output()


def test_a_call_that_is_not_on_the_list_is_refused(folder: Path) -> None:
    added = patched_filter()
    del allowed_calls(added)["proxy_set_buffer_bytes"]
    with page_behind(added, folder) as (page, envoy):
        assert page == PAGE
        wait_for("the refusal", lambda: f"{REFUSED_CALL}" in envoy.output(), timeout_s=10)


def test_all_forms_configure_the_filter_alike_and_for_no_requests_to_the_gateway() -> None:
    first, *others = configurations().values()
    assert all(one == first for one in others)
    # Prefetching needs a cache behind the filter, which a gateway lacks.
    assert "prefetch" not in first
    assert "proxy_http_call" not in allowed_calls(patched_filter())
