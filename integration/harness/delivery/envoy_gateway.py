"""Envoy Gateway without a cluster: its file provider, and the Envoy of this repository, in a namespace of its own.

The namespace is needed because Envoy Gateway listens on fixed ports. `make test-gateway` builds the program.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.host.artifacts import built, tool
from harness.host.processes import Child
from harness.net.namespaces import Namespace

ENVOY_VERSION = "1.40.0"
CLASS = "eg"


def settings(folder: Path, resources: Path) -> dict[str, Any]:
    """Returns the configuration of Envoy Gateway. Everything that it writes is below `folder`."""
    homes = {"configHome": "config", "dataHome": "data", "stateHome": "state", "runtimeDir": "run"}
    host = {key: str(folder / name) for key, name in homes.items()}
    return {
        "apiVersion": "gateway.envoyproxy.io/v1alpha1",
        "kind": "EnvoyGateway",
        "gateway": {"controllerName": "gateway.envoyproxy.io/gatewayclass-controller"},
        "provider": {
            "type": "Custom",
            "custom": {
                "resource": {"type": "File", "file": {"paths": [str(resources)]}},
                "infrastructure": {"type": "Host", "host": host},
            },
        },
        "extensionApis": {"enableBackend": True, "enableEnvoyPatchPolicy": True},
    }


def on_the_host(envoy_proxy: dict[str, Any]) -> dict[str, Any]:
    """Returns an EnvoyProxy for the Envoy of this repository instead of one in a pod."""
    provider = {"type": "Host", "host": {"envoyVersion": ENVOY_VERSION}}
    return {**envoy_proxy, "spec": {**envoy_proxy["spec"], "provider": provider}}


def site(namespace: str, name: str, port: int, host: str, origin: tuple[str, int]) -> list[dict[str, Any]]:
    """Returns a Gateway with one listener for http, and a route to one origin. The Gateway uses the EnvoyProxy
    `longhaul`."""
    metadata = {"namespace": namespace, "name": name}
    proxy = {"group": "gateway.envoyproxy.io", "kind": "EnvoyProxy", "name": "longhaul"}
    backend = {"group": "gateway.envoyproxy.io", "kind": "Backend", "name": name}
    return [
        {
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": metadata,
            "spec": {
                "gatewayClassName": CLASS,
                "infrastructure": {"parametersRef": proxy},
                "listeners": [{"name": "http", "protocol": "HTTP", "port": port}],
            },
        },
        {
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": metadata,
            "spec": {
                "parentRefs": [{"name": name}], "hostnames": [host],
                "rules": [{"backendRefs": [backend], "matches": [{"path": {"type": "PathPrefix", "value": "/"}}]}],
            },
        },
        {
            "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "Backend", "metadata": metadata,
            "spec": {"endpoints": [{"ip": {"address": origin[0], "port": origin[1]}}]},
        },
    ]  # fmt: skip


@contextmanager
def envoy_gateway(folder: Path, inside: Namespace, resources: Sequence[dict[str, Any]]) -> Iterator[Child]:
    """Runs Envoy Gateway with these resources until the context ends."""
    program = tool("envoy-gateway-*", "test-gateway")
    watched = folder / "resources"
    watched.mkdir(parents=True)
    classes = {
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": CLASS},
        "spec": {"controllerName": "gateway.envoyproxy.io/gatewayclass-controller"},
    }  # fmt: skip
    (watched / "resources.yaml").write_text("\n---\n".join(json.dumps(one) for one in [classes, *resources]))
    configuration = folder / "envoy-gateway.yaml"
    configuration.write_text(json.dumps(settings(folder, watched)))
    # func-e, which Envoy Gateway starts Envoy with, downloads no version that it finds here.
    binary = folder / "data" / "envoy-versions" / ENVOY_VERSION / "bin" / "envoy"
    binary.parent.mkdir(parents=True)
    binary.symlink_to(built("envoy").resolve())
    home = {"HOME": str(folder / "home")}
    (folder / "home").mkdir()
    certificates = Child(
        [program, "certgen", "--local", "--config-home", folder / "config"], folder / "certgen.log", env=home
    )
    assert certificates.process.wait(timeout=60) == 0, certificates.output()
    line = inside.inside([program, "server", "--config-path", configuration])
    with Child(line, folder / "envoy-gateway.log", env=home, stop_timeout_s=30) as child:
        yield child
