"""The plainest Envoy, with or without the filter: one listener, one cluster, one worker.

Buffers, and the calls between Envoy and the filter, are as Longhaul sets them. Everything else is Envoy's default, so
the filter is the only difference.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.host_calls import of_url_rewrite

CLUSTER_BUFFER_BYTES = 32768
LISTENER_BUFFER_BYTES = 2 * CLUSTER_BUFFER_BYTES

TARGET = "pep.example.net"
"""The authority that URLs are moved to."""

CONFIGURATION = {
    "targets": {"https": [TARGET], "http": []},
    "own": [TARGET, "198.51.100.12:8080"],
    "level": "safe",
    "exclude": [],
    "ports": [80, 443],
}


def bootstrap(port: int, origin: tuple[str, int], wasm: Path | None) -> str:
    """Returns Envoy's configuration. Without a module it has no filter."""
    filters = [{"name": "router", "typed_config": _typed("extensions.filters.http.router.v3.Router")}]
    if wasm:
        filters.insert(0, _filter(wasm))
    manager = _typed(
        "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="bench",
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
            {"match": {"prefix": "/"}, "route": {"cluster": "origin", "timeout": "0s"}}
        ]}]},
        http_filters=filters,
    )  # fmt: skip
    return json.dumps({
        "static_resources": {
            "listeners": [{
                "name": "bench",
                "address": _address("127.0.0.1", port),
                "per_connection_buffer_limit_bytes": LISTENER_BUFFER_BYTES,
                "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
            }],
            "clusters": [{
                "name": "origin",
                "type": "STATIC",
                "per_connection_buffer_limit_bytes": CLUSTER_BUFFER_BYTES,
                "load_assignment": {"cluster_name": "origin", "endpoints": [
                    {"lb_endpoints": [{"endpoint": {"address": _address(*origin)}}]}
                ]},
            }],
        }
    })  # fmt: skip


def _filter(wasm: Path) -> dict[str, Any]:
    value = json.dumps(CONFIGURATION)
    plugin = {
        "name": "url-rewrite",
        "configuration": {"@type": "type.googleapis.com/google.protobuf.StringValue", "value": value},
        "vm_config": {
            "runtime": "envoy.wasm.runtime.v8",
            "code": {"local": {"filename": str(wasm)}},
            "capability_restriction_config": {"allowed_capabilities": of_url_rewrite()},
        },
    }
    return {"name": "url-rewrite", "typed_config": _typed("extensions.filters.http.wasm.v3.Wasm", config=plugin)}


def _typed(kind: str, **rest: Any) -> dict[str, Any]:
    return {"@type": f"type.googleapis.com/envoy.{kind}", **rest}


def _address(host: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port}}
