"""The chart's manifests before a real API server: `make test-k8s`. Nothing runs there, because there is no kubelet."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.delivery.api_server import RESTRICTED, Api
from harness.delivery.chart import CHART, EXAMPLES, MINIMAL, Object, objects, workload, written

GROUND: Mapping[str, Any] = {
    "longhaul": {
        "role": "ground",
        "split": {"peer": ["ship-7.example.org"], "cert": "c/tls.crt", "key": "c/tls.key", "ca": "c/ca.crt"},
    }
}
REMOTE: Mapping[str, Any] = {
    "longhaul": {
        "role": "remote",
        "split": {"peer": "ground.example.org:8443", "cert": "c/tls.crt", "key": "c/tls.key", "ca": "c/ca.crt"},
    }
}
KINDS = ("Deployment", "DaemonSet", "StatefulSet")
ROLES: Mapping[str, Mapping[str, Any]] = {"edge": {}, "remote": REMOTE, "ground": GROUND}
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "metrics": {"metrics": {"enabled": True, "podMonitor": True}, "service": {"type": "NodePort"}},
    "own objects": {
        "listConfigMaps": [{"name": "names", "keys": ["domains.txt"]}],
        "certificates": {"c": {"secret": "pair", "ca": True}},
        "service": {"type": "ClusterIP", "annotations": {"example.org/pool": "clients"}},
        "tolerations": [{"key": "edge", "operator": "Exists"}],
        "priorityClassName": "system-cluster-critical",
        "longhaul": {"drain": {"wait": "500ms", "time": "1.5m"}, "tls": {"terminate": [{"names": ["a.example"]}]}},
    },
}


def judged(rendered: list[Object]) -> list[Object]:
    """Returns the objects and the workload's pod, because Pod Security refuses pods alone."""
    controller = workload(rendered)
    spec = copy.deepcopy(controller["spec"]["template"]["spec"])
    claims = controller["spec"].get("volumeClaimTemplates", [])
    spec["volumes"] += [
        {"name": one["metadata"]["name"], "persistentVolumeClaim": {"claimName": "claim"}} for one in claims
    ]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "box-longhaul-0"}, "spec": spec}
    return [*rendered, pod]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_server_accepts_every_example(api: Api, example: Path) -> None:
    if example.stem == "host-network":
        done = api.create(judged(objects(example)), "privileged")
        assert done.returncode == 0, done.stderr
        done = api.create(judged(objects(example)), RESTRICTED)
        assert "host namespaces (hostNetwork=true)" in done.stderr
        return
    done = api.create(judged(objects(example)), RESTRICTED)
    assert done.returncode == 0, done.stderr
    # A controller whose pods would be refused gets a warning alone.
    assert "Warning" not in done.stderr


@pytest.mark.parametrize(("kind", "role", "variant"), list(itertools.product(KINDS, ROLES, VARIANTS)))
def test_a_restricted_namespace_accepts_the_matrix(api: Api, kind: str, role: str, variant: str, folder: Path) -> None:
    rendered = objects(*written(folder, MINIMAL, ROLES[role], VARIANTS[variant], {"kind": kind}))
    done = api.create(judged(rendered), RESTRICTED)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr


def box(pod: Object) -> Object:
    return pod["spec"]["containers"][0]


def kind_of(rendered: list[Object], kind: str) -> Object:
    return next(one for one in rendered if one["kind"] == kind)


WRONG: Mapping[str, tuple[Callable[[list[Object]], Any], str]] = {
    "a pod on the host's network": (
        lambda all: kind_of(all, "Pod")["spec"].update(hostNetwork=True),
        "may not be specified when 'hostNetwork' is true",
    ),
    "a pod with more privileges than its parent": (
        lambda all: box(kind_of(all, "Pod"))["securityContext"].update(allowPrivilegeEscalation=True),
        "allowPrivilegeEscalation != false",
    ),
    "a pod with a capability": (
        lambda all: box(kind_of(all, "Pod"))["securityContext"]["capabilities"].update(add=["NET_ADMIN"]),
        "unrestricted capabilities",
    ),
    "a pod that runs as root": (
        lambda all: kind_of(all, "Pod")["spec"]["securityContext"].update(runAsUser=0),
        "runAsUser=0",
    ),
    "a pod with another sysctl": (
        lambda all: kind_of(all, "Pod")["spec"]["securityContext"].update(
            sysctls=[{"name": "kernel.msgmax", "value": "1"}]
        ),
        "forbidden sysctls (kernel.msgmax)",
    ),
    "a pod without seccomp": (
        lambda all: kind_of(all, "Pod")["spec"]["securityContext"].update(seccompProfile={"type": "Unconfined"}),
        'must not set securityContext.seccompProfile.type to "Unconfined"',
    ),
    "a pod with a folder of its node": (
        lambda all: kind_of(all, "Pod")["spec"]["volumes"].append({"name": "node", "hostPath": {"path": "/"}}),
        "restricted volume types",
    ),
    "a misspelt field": (
        lambda all: box(kind_of(all, "Pod"))["securityContext"].update(readOnlyRoot=True),
        'unknown field "spec.containers[0].securityContext.readOnlyRoot"',
    ),
    "a probe of a port that does not exist": (
        lambda all: box(kind_of(all, "Pod"))["readinessProbe"]["httpGet"].update(port=0),
        "must be between 1 and 65535",
    ),
    "a mount without its volume": (
        lambda all: kind_of(all, "Pod")["spec"]["volumes"].pop(0),
        "volumeMounts[0].name: Not found",
    ),
    "a workload whose pods it does not select": (
        lambda all: workload(all)["spec"]["selector"]["matchLabels"].update(other="label"),
        "`selector` does not match template `labels`",
    ),
    "a Service that keeps addresses without a way in": (
        lambda all: kind_of(all, "Service")["spec"].update(type="ClusterIP"),
        "may only be set for externally-accessible services",
    ),
    "a Service with one port twice": (
        lambda all: kind_of(all, "Service")["spec"]["ports"].append({"name": "again", "port": 80, "protocol": "TCP"}),
        "Duplicate value",
    ),
    "a budget with both numbers": (
        lambda all: kind_of(all, "PodDisruptionBudget")["spec"].update(minAvailable=1),
        "minAvailable and maxUnavailable cannot be both set",
    ),
    "a policy with a range that is none": (
        lambda all: kind_of(all, "NetworkPolicy")["spec"]["ingress"][0].update(
            {"from": [{"ipBlock": {"cidr": "203.0.113.0/33"}}]}
        ),
        "cidr",
    ),
    "a certificate without an issuer": (
        lambda all: kind_of(all, "Certificate")["spec"].pop("issuerRef"),
        "spec.issuerRef: Required value",
    ),
    "a monitor with a misspelt field": (
        lambda all: kind_of(all, "PodMonitor")["spec"]["podMetricsEndpoints"][0].update(intervall="30s"),
        'unknown field "spec.podMetricsEndpoints[0].intervall"',
    ),
    "a list that is too long": (
        lambda all: kind_of(all, "ConfigMap")["data"].update(long="x" * (1 << 20)),
        "may not be more than 1048576 bytes",
    ),
}
"""Changes of a right set of manifests, and a part of the server's message."""


@pytest.mark.parametrize("wrong", WRONG)
def test_the_server_refuses(api: Api, wrong: str) -> None:
    change, message = WRONG[wrong]
    rendered = judged(objects(CHART / "examples" / "edge.yaml"))
    before = json.dumps(rendered)
    change(rendered)
    assert json.dumps(rendered) != before
    done = api.create(rendered, RESTRICTED)
    assert done.returncode != 0, done.stdout
    assert message in done.stderr
