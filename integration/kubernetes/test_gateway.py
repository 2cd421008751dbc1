"""The resources for Envoy Gateway and Istio before a real API server that has their definitions: `make test-k8s`."""

from __future__ import annotations

import pytest

from harness.artifacts import REPOSITORY
from harness.kubernetes import documents
from harness.kubernetes_api import RESTRICTED, Api

GATEWAY = REPOSITORY / "deploy" / "gateway"
MISSPELT = {
    "envoy-gateway": lambda policy: policy["spec"]["wasm"][0].update(failStrategy="FAIL_RELOAD"),
    "istio": lambda plugin: plugin["spec"].update(failStrategy="RELOAD"),
}
"""By example: a change that makes it wrong."""


@pytest.mark.parametrize("example", MISSPELT)
def test_the_server_accepts_the_example_and_refuses_a_wrong_one(api: Api, example: str) -> None:
    [resource] = documents(GATEWAY / f"{example}.yaml")
    # The dry run needs a namespace that exists.
    resource["metadata"].pop("namespace")
    done = api.create([resource], RESTRICTED)
    assert done.returncode == 0, done.stderr
    MISSPELT[example](resource)
    done = api.create([resource], RESTRICTED)
    assert done.returncode != 0
    assert "failStrategy" in done.stderr
