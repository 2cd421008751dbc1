"""The plainest Envoy, with or without the filter: one listener, one cluster, one worker.

Buffers, and the calls between Envoy and the filter, are as Longhaul sets them. Everything else is Envoy's default, so
the filter is the only difference.
"""

from __future__ import annotations

import json
from pathlib import Path

from harness.boxes import filters

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


def bootstrap(port: int, origin: tuple[str, int], module: Path | None, engine: str) -> str:
    """Returns Envoy's configuration. Without a module it has no filter."""
    return json.dumps(
        filters.bootstrap(
            "origin",
            filters.address(origin[1], origin[0]),
            [filters.http_filter("edge", "url-rewrite", CONFIGURATION, module, engine)] if module else [],
            listen=port,
            buffers=(LISTENER_BUFFER_BYTES, CLUSTER_BUFFER_BYTES),
        )
    )
