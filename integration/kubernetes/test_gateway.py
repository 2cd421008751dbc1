"""The resources for Envoy Gateway and Istio before a real API server that has their definitions: `make test-k8s`."""

from __future__ import annotations

import pytest

from harness.delivery.api_server import RESTRICTED, Api
from harness.delivery.chart import documents
from harness.host.artifacts import REPOSITORY

GATEWAY = REPOSITORY / "deploy" / "gateway"
MISSPELT = {
    "envoy-gateway/extension.yaml": ("EnvoyExtensionPolicy", lambda spec: spec["wasm"][0].update(failStrategy="CLOSE")),
    "envoy-gateway/patch.yaml": ("EnvoyPatchPolicy", lambda spec: spec.update(failStrategy="CLOSE")),
    "envoy-gateway/native.yaml": (
        "EnvoyExtensionPolicy",
        lambda spec: spec["dynamicModule"][0].update(failStrategy="CLOSE"),
    ),
    "istio/wasm-plugin.yaml": ("WasmPlugin", lambda spec: spec.update(failStrategy="RELOAD")),
}
"""By file: a kind in it, and a change that makes it wrong."""


@pytest.mark.parametrize("file", MISSPELT)
def test_the_server_accepts_what_is_rendered_and_refuses_a_wrong_one(api: Api, file: str) -> None:
    resources = documents(GATEWAY / file)
    for resource in resources:
        # The dry run needs a namespace that exists.
        resource["metadata"].pop("namespace")
    done = api.create(resources, RESTRICTED)
    assert done.returncode == 0, done.stderr
    kind, misspell = MISSPELT[file]
    misspell(next(one for one in resources if one["kind"] == kind)["spec"])
    done = api.create(resources, RESTRICTED)
    assert done.returncode != 0
    assert "failStrategy" in done.stderr
