"""The Helm chart: rendered by helm, and held against the schemas of Kubernetes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from harness.host.artifacts import REPOSITORY, Missing

CHART = REPOSITORY / "deploy" / "chart"
EXAMPLES = sorted((CHART / "examples").glob("*.yaml"))
ENVIRONMENT = REPOSITORY / "target" / "venv-kubernetes"
VERSION = "1.36"
RELEASE = "box"

Object = dict[str, Any]

MINIMAL: Mapping[str, Any] = {
    "longhaul": {
        "link": {"rtt": "600ms", "down": "20mbit", "up": "5mbit"},
        "proxy": {"addresses": ["198.51.100.12"]},
        "upstream": {"resolvers": ["192.0.2.53"]},
    }
}
"""The fewest values that make an edge."""

WRONG: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "an unknown value": ({"replicaCount": 3}, "additional properties 'replicaCount' not allowed"),
    "an unknown value in a group": ({"service": {"traffic": "Local"}}, "additional properties 'traffic' not allowed"),
    "an unknown kind": ({"kind": "Pod"}, "'/kind': value must be one of 'Deployment', 'DaemonSet', 'StatefulSet'"),
    "a negative number of pods": ({"replicas": -1}, "'/replicas': minimum"),
    "a list with a path": ({"lists": {"a/b.txt": "example.org\n"}}, "a/b.txt"),
    "a list that is too long": (
        {"lists": {"domains.txt": "example.org\n" * 90_000}},
        "domains.txt has 1080011 bytes, and a ConfigMap holds 1048576. Put the list on a volume",
    ),
    "no health endpoint": ({"longhaul": {"listen": {"health": False}}}, "longhaul.listen.health is off"),
    "a health endpoint on loopback": (
        {"longhaul": {"listen": {"health": "127.0.0.1:9902"}}},
        "the kubelet cannot reach loopback",
    ),
    "a time without a unit": ({"longhaul": {"drain": {"time": "30"}}}, '"30" is no time'),
    "a monitor without its pages": ({"metrics": {"podMonitor": True}}, "metrics.podMonitor needs metrics.enabled"),
    "a certificate from nowhere": ({"certificates": {"pep": {"dnsNames": ["pep.example.net"]}}}, "/certificates/pep"),
    "a role that is none": ({"longhaul": {"role": "router"}}, "'/longhaul/role'"),
}
"""Values that the chart refuses, and a part of the message."""


def program(name: str) -> Path:
    """Returns the path of a program that `make` installs for these tests."""
    path = ENVIRONMENT / "bin" / name
    if not path.exists():
        raise Missing(f"{name} is not in {ENVIRONMENT}: run `make target/venv-kubernetes/.ready` first")
    return path


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs helm without the user's own settings."""
    return subprocess.run(
        [str(program("helm")), *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60,
        env={"HOME": str(ENVIRONMENT), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip


def template(*files: Path, namespace: str = "pep") -> subprocess.CompletedProcess[str]:
    """Renders the chart with files of values."""
    options = [part for file in files for part in ("--values", file)]
    return helm("template", RELEASE, CHART, "--namespace", namespace, *options)


def written(folder: Path, *values: Mapping[str, Any]) -> list[Path]:
    """Writes values to files (JSON is YAML), one each."""
    paths = [folder / f"values-{number}.json" for number in range(len(values))]
    for path, one in zip(paths, values, strict=True):
        path.write_text(json.dumps(one))
    return paths


def parsed(text: str) -> list[Object]:
    """Reads YAML documents."""
    return [one for one in yaml.safe_load_all(text) if one]


def documents(file: Path) -> list[Object]:
    """Returns the objects of a file."""
    return parsed(file.read_text())


def objects(*files: Path) -> list[Object]:
    """Renders the chart. Returns its objects."""
    done = template(*files)
    assert done.returncode == 0, done.stderr
    return parsed(done.stdout)


def one(rendered: Iterable[Object], kind: str, name: str = f"{RELEASE}-longhaul") -> Object:
    """Returns the object of a kind and a name."""
    [found] = [each for each in rendered if each["kind"] == kind and each["metadata"]["name"] == name]
    return found


def workload(rendered: Iterable[Object]) -> Object:
    """Returns the Deployment, DaemonSet or StatefulSet."""
    [found] = [each for each in rendered if each["apiVersion"] == "apps/v1"]
    return found


def validate(*manifests: Path) -> subprocess.CompletedProcess[str]:
    """Holds files against the schemas, which know every field of Kubernetes' own kinds."""
    command = [program("kubernetes-validate"), "--strict", "--kubernetes-version", VERSION, *manifests]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
