"""Envoy on loopback with one filter, whose settings are those that `longhaul render` writes for it."""

from __future__ import annotations

import json
import os
import re
import tempfile
import unittest
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from harness.host.artifacts import dist, list_skip
from harness.host.processes import Child
from harness.host.waiting import Timeout, wait_for
from harness.net.authority import Authority

from .admin import ask
from .pep import ENGINE, command, write_config

Tree = dict[str, Any]
BUFFER_BYTES = 32768
EXTENSIONS = "envoy.extensions"
END = "end.example"


def envoy_and_filter(name: str) -> tuple[Path, Path]:
    """Returns Envoy and the module of the filter `name`. If one is missing, the test is skipped, or fails where no test
    may be skipped. LONGHAUL_ENVOY and LONGHAUL_NAME_WASM name other files than those of `make build`."""
    file = name.replace("-", "_")
    envoy = _product(name, "LONGHAUL_ENVOY", "envoy")
    return envoy, _product(name, f"LONGHAUL_{file.upper()}_WASM", f"{file}.wasm")


def _product(name: str, variable: str, product: str) -> Path:
    path = Path(os.environ.get(variable) or dist() / product)
    if path.exists():
        return path
    reason = f"{name} in Envoy: {product} ({variable}) is not there; `make build` puts it into target/dist"
    list_skip(reason)
    if os.environ.get("LONGHAUL_REQUIRE_ALL") == "1":
        raise AssertionError(reason)
    raise unittest.SkipTest(reason)


@cache
def rendered(role: str, engine: str) -> dict[str, Tree]:
    """Returns the filters of a role for an engine, by the names of their files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        authority = Authority(folder)
        identity = {**authority.issue(END).as_dict(), "ca": str(authority.files.cert)}
        sections: Tree = {
            "edge": {"proxy": {"addresses": ["198.51.100.12"]}, "upstream": {"resolvers": ["192.0.2.53"]}},
            "remote": {"proxy": {"addresses": ["198.51.100.12"]}, "split": {"peer": "192.0.2.1:8443", **identity}},
            "ground": {"upstream": {"resolvers": ["192.0.2.53"]}, "split": {"peer": [END], **identity}},
        }[role]
        link = {"rtt": "600ms", "down": "20mbit", "up": "5mbit"}
        done = command(
            "render", write_config(folder, {"role": role, "engine": engine, "link": link, **sections}),
            "--out", folder / "out",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        files = (folder / "out" / "ecds").glob("*.yaml")
        return {file.stem: yaml.safe_load(file.read_text())["resources"][0]["typed_config"] for file in files}


def http_filter(
    role: str, name: str, configuration: Mapping[str, Any] | str, wasm: Path | None = None, engine: str = ""
) -> Tree:
    """Returns the filter in the file `name` of a role, with a configuration of the caller's. The module is that of
    `make build`, or `wasm`. The engine is `engine`, or LONGHAUL_ENGINE, or native. LONGHAUL_NATIVE_FILTERS names
    another native module than that of `make build`."""
    engine = engine or ENGINE
    config: Tree = json.loads(json.dumps(rendered(role, engine)[name]))
    text = configuration if isinstance(configuration, str) else json.dumps(configuration)
    if "dynamic_module_config" in config:
        config["filter_config"]["value"] = text
        local = config["dynamic_module_config"]["module"]["local"]
        local["filename"] = str(wasm or _product(name, "LONGHAUL_NATIVE_FILTERS", "longhaul_filters.so"))
        return {"name": name, "typed_config": config}
    plugin = config["config"]
    plugin["configuration"]["value"] = text
    code = plugin["vm_config"]["code"]["local"]
    module, _, _ = Path(code["filename"]).stem.rpartition("-")
    code["filename"] = str(wasm or envoy_and_filter(module)[1])
    return {"name": name, "typed_config": config}


def typed(kind: str, **rest: Any) -> Tree:
    """Returns a message of Envoy's with its type."""
    return {"@type": f"type.googleapis.com/{kind}", **rest}


def address(port: int, host: str = "127.0.0.1") -> Tree:
    """Returns an address of Envoy's."""
    return {"socket_address": {"address": host, "port_value": port}}


def bootstrap(
    cluster: str,
    upstream: Tree,
    filters: list[Tree],
    *,
    listen: int = 0,
    manager: Tree | None = None,
    route: Tree | None = None,
    router: Tree | None = None,
    options: Tree | None = None,
    buffers: tuple[int, int] = (BUFFER_BYTES, BUFFER_BYTES),
    unknown: str = "",
) -> Tree:
    """Returns the configuration of an Envoy with one listener and one cluster at the address `upstream`. `manager`,
    `route` and `router` add to the parts of that name, and `options` are the protocol of the cluster. The buffers
    are those of the listener and of the cluster. The host `unknown` has no route."""
    protocol = f"{EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions"
    everything = {"prefix": "/"}
    routes = [{"match": everything, "route": {"cluster": cluster, "timeout": "0s", **(route or {})}}]
    hosts: list[Tree] = [{"name": "all", "domains": ["*"], "routes": routes}]
    if unknown:
        nowhere = [{"match": everything, "direct_response": {"status": 503}}]
        hosts.append({"name": "unknown", "domains": [unknown], "routes": nowhere})
    last = typed(f"{EXTENSIONS}.filters.http.router.v3.Router", **(router or {}))
    connections = typed(
        f"{EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        **{
            "stat_prefix": "test",
            "route_config": {"virtual_hosts": hosts},
            "http_filters": [*filters, {"name": "router", "typed_config": last}],
            **(manager or {}),
        },
    )
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": upstream}}]}]
    return {
        "node": {"id": "test", "cluster": "test"},
        "static_resources": {
            "listeners": [
                {
                    "name": "test",
                    "address": address(listen),
                    "per_connection_buffer_limit_bytes": buffers[0],
                    "filter_chains": [{"filters": [{"name": "http", "typed_config": connections}]}],
                }
            ],
            "clusters": [
                {
                    "name": cluster,
                    "type": "STATIC",
                    "per_connection_buffer_limit_bytes": buffers[1],
                    "circuit_breakers": {"thresholds": [{"max_retries": 1000}]},
                    "load_assignment": {"cluster_name": cluster, "endpoints": endpoints},
                    **({"typed_extension_protocol_options": {protocol: typed(protocol, **options)}} if options else {}),
                }
            ],
        },
    }


class Envoy:
    """One Envoy, which runs until `close`. `log` is its output so far."""

    def __init__(self, configuration: Tree, workers: int = 1) -> None:
        self._stack = ExitStack()
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="longhaul-filter-")))
        self._admin = folder / "admin.sock"
        file = folder / "envoy.json"
        file.write_text(json.dumps({**configuration, "admin": {"address": {"pipe": {"path": str(self._admin)}}}}))
        envoy = _product("a filter", "LONGHAUL_ENVOY", "envoy")
        options = ["--concurrency", str(workers), "--disable-hot-restart", "-l", "warning"]
        child = Child([envoy, "-c", file, *options], folder / "envoy.log", cwd=folder)
        self._child = self._stack.enter_context(child)
        try:
            wait_for("Envoy to be ready", self._is_live)
        except BaseException:
            self.close()
            raise
        self.port = int(re.findall(r"127\.0\.0\.1:(\d+)", self.admin("/listeners"))[0])

    def _is_live(self) -> bool:
        if self._child.process.poll() is not None:
            raise Timeout(f"Envoy did not start:\n{self.log[-3000:]}")
        with suppress(OSError):
            return self.admin("/ready").startswith("LIVE")
        return False

    @property
    def log(self) -> str:
        return self._child.output()

    def admin(self, path: str) -> str:
        """Sends a GET to the admin interface."""
        return ask(self._admin, path)

    def counters(self, filter_name: str) -> dict[str, int]:
        """Returns the counters of a filter by name, without their prefix."""
        # Those of a native filter in a cluster begin with the cluster's name.
        prefix = f"wasmcustom.longhaul_{filter_name}_"
        found = json.loads(self.admin(f"/stats?format=json&type=Counters&filter={re.escape(prefix)}"))["stats"]
        return {one["name"].partition(prefix)[2]: one["value"] for one in found if "name" in one}

    def close(self) -> None:
        """Ends it."""
        self._stack.close()
