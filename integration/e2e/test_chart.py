"""The Helm chart without a cluster: schemas, derived values, refusals, and its metrics.

`make test-k8s` puts the same manifests to a real API server.
"""

from __future__ import annotations

import re
import shutil
import tomllib
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from harness.boxes.pep import Pep, command
from harness.delivery.chart import (
    CHART,
    EXAMPLES,
    MINIMAL,
    WRONG,
    Object,
    helm,
    objects,
    one,
    parsed,
    template,
    validate,
    workload,
    written,
)
from harness.host.artifacts import REPOSITORY
from harness.host.ports import free_ports
from harness.host.waiting import wait_for
from harness.net.authority import Authority

FOREIGN = {"Certificate", "PodMonitor"}
"""Kinds of other projects, which Kubernetes has no schema of."""


def pod(rendered: list[Object]) -> Object:
    return workload(rendered)["spec"]["template"]["spec"]


def example(name: str) -> list[Object]:
    return objects(CHART / "examples" / f"{name}.yaml")


def test_helm_accepts_the_chart_and_its_version_is_the_projects() -> None:
    done = helm("lint", "--strict", CHART, "--values", CHART / "examples" / "edge.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    version = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    said = (CHART / "Chart.yaml").read_text()
    assert re.findall(r"^(?:appVersion|version): (.*)$", said, re.MULTILINE) == [version, version]


def test_the_schemas_accept_every_example(folder: Path) -> None:
    assert len(EXAMPLES) >= 6
    manifests = []
    for path in EXAMPLES:
        done = template(path)
        assert done.returncode == 0, f"{path.name}: {done.stderr}"
        manifests.append(folder / path.name)
        manifests[-1].write_text(done.stdout)
    done = validate(*manifests)
    assert done.returncode == 0, done.stdout + done.stderr
    unknown = re.findall(r"Couldn't find schema for kind (\w+)", done.stdout + done.stderr)
    assert set(unknown) == FOREIGN


def test_the_schemas_refuse_a_field_that_does_not_exist(folder: Path) -> None:
    manifest = folder / "wrong.yaml"
    said = template(CHART / "examples" / "edge.yaml").stdout
    manifest.write_text(said.replace("readOnlyRootFilesystem", "readOnlyRoot"))
    done = validate(manifest)
    assert done.returncode != 0
    assert "readOnlyRoot" in done.stdout + done.stderr


@pytest.mark.parametrize("wrong", WRONG)
def test_the_chart_refuses(wrong: str, folder: Path) -> None:
    values, message = WRONG[wrong]
    done = template(*written(folder, MINIMAL, values))
    assert done.returncode != 0
    assert message in done.stderr


def test_a_pod_is_restricted_and_stops_after_its_drain() -> None:
    restricted = pod(example("edge-stateful"))
    # drain.wait of 5 s, drain.time of 2 min, and 10 s.
    assert restricted["terminationGracePeriodSeconds"] == 5 + 120 + 10
    assert restricted["securityContext"]["sysctls"] == [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]
    [box] = restricted["containers"]
    assert box["securityContext"] == {
        "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}
    }  # fmt: skip
    assert box["image"].endswith("longhaul:0.1.0")
    probes = {name: box[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert probes == {"startupProbe": "/live", "livenessProbe": "/live", "readinessProbe": "/ready"}
    assert {"name": "health", "containerPort": 9902, "protocol": "TCP"} in box["ports"]


def test_on_the_hosts_network_the_image_brings_its_capabilities() -> None:
    rendered = example("host-network")
    on_host = pod(rendered)
    assert on_host["hostNetwork"] is True
    assert "sysctls" not in on_host["securityContext"]
    [box] = on_host["containers"]
    assert box["image"].endswith("longhaul:0.1.0-host")
    assert box["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}
    assert {each["kind"] for each in rendered} == {"ConfigMap", "DaemonSet"}


def ports(service: Object) -> set[tuple[int, str]]:
    return {(port["port"], port["protocol"]) for port in service["spec"]["ports"]}


def test_the_service_keeps_the_addresses_of_clients_and_has_the_ports_of_the_file(folder: Path) -> None:
    service = one(example("edge"), "Service")
    assert service["spec"]["externalTrafficPolicy"] == "Local"
    encrypted = {(853, "TCP"), (853, "UDP"), (8443, "TCP")}
    assert ports(service) == {(80, "TCP"), (443, "TCP"), (443, "UDP"), (53, "UDP"), (53, "TCP")} | encrypted
    changed = {"longhaul": {"listen": {"http": ["0.0.0.0:8080", "[::]:8080"], "tls": False, "dns": "[::]:5353"}}}
    moved = one(objects(*written(folder, MINIMAL, changed)), "Service")
    assert ports(moved) == {(8080, "TCP"), (5353, "UDP"), (5353, "TCP")}
    assert ports(one(example("ground"), "Service")) == {(8443, "TCP")}


def test_the_file_the_lists_and_the_certificates_are_one_volume() -> None:
    rendered = example("edge")
    [volume] = [each for each in pod(rendered)["volumes"] if each["name"] == "configuration"]
    paths = []
    for source in volume["projected"]["sources"]:
        [(kind, what)] = source.items()
        paths += [item["path"] for item in what["items"]]
        if kind == "configMap":
            keys = one(rendered, "ConfigMap", what["name"])["data"]
            assert {item["key"] for item in what["items"]} == keys.keys()
    assert paths == [
        "longhaul.yaml", "lists/domains.txt", "certificates/pep/tls.crt", "certificates/pep/tls.key"
    ]  # fmt: skip
    assert one(rendered, "Certificate", "box-longhaul-pep")["spec"]["secretName"] == "box-longhaul-pep"


def mounted(rendered: list[Object], folder: Path) -> Path:
    """Writes the pod's volume `configuration` as the kubelet does: a folder, the link `..data` to it, and links through
    that. The lists of `extraVolumes` are beside it. Returns the path of longhaul.yaml."""
    data, authority = folder / "..2026_01_01", Authority(folder)
    [volume] = [each for each in pod(rendered)["volumes"] if each["name"] == "configuration"]
    for source in volume["projected"]["sources"]:
        [(kind, what)] = source.items()
        paths = [data / item["path"] for item in what["items"]]
        for item, path in zip(what["items"], paths, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "configMap":
                path.write_text(one(rendered, "ConfigMap", what["name"])["data"][item["key"]])
        if kind == "secret":
            pair = authority.issue("pep.example.net")
            shutil.copy(pair.cert, paths[0].with_name("tls.crt"))
            shutil.copy(pair.key, paths[0].with_name("tls.key"))
            shutil.copy(authority.files.cert, paths[0].with_name("ca.crt"))
    (folder / "..data").symlink_to(data.name)
    for top in data.iterdir():
        (folder / top.name).symlink_to(f"..data/{top.name}")
    (folder / "domains.txt").write_text("example.org\n")
    (folder / "steered.zone").write_text(
        "$TTL 60\n@ SOA localhost. nobody.invalid. 1 60 60 1200 60\nexample.org A 192.0.2.1\n"
    )
    file = data / "longhaul.yaml"
    file.write_text(file.read_text().replace("/var/lib/lists", str(folder)))
    return folder / "longhaul.yaml"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_longhaul_accepts_the_file_of_every_example_as_the_kubelet_mounts_it(path: Path, folder: Path) -> None:
    done = command("check", mounted(objects(path), folder), "--json")
    assert done.returncode == 0, done.stdout + done.stderr


def test_pods_with_a_network_of_their_own_have_no_packet_rules() -> None:
    def file(name: str) -> str:
        return one(example(name), "ConfigMap")["data"]["longhaul.yaml"]

    assert "intercept: none" in file("edge")
    # A ground has no clients, and on the host's network Longhaul's own default applies.
    assert "intercept" not in file("ground") + file("host-network")


def test_longhaul_refuses_a_file_whose_list_the_chart_does_not_mount(folder: Path) -> None:
    wrong = {"longhaul": {"dns": {"domains": ["lists/domains.txt"]}}}
    done = command("check", mounted(objects(*written(folder, MINIMAL, wrong)), folder))
    assert done.returncode != 0
    assert "lists/domains.txt" in done.stderr


def test_a_box_started_from_the_chart_passes_the_probes_and_ends_within_the_grace_period(folder: Path) -> None:
    http, tls, dns, metrics, health = free_ports(5)
    listen = {
        "http": f"127.0.0.1:{http}", "tls": f"127.0.0.1:{tls}", "dns": f"127.0.0.1:{dns}",
        "health": f"0.0.0.0:{health}", "status": False,
    }  # fmt: skip
    longhaul = {"listen": listen, "cache": False, "dns": {"www": True, "health": False}}
    values = {"longhaul": longhaul, "metrics": {"enabled": True, "port": metrics}}
    rendered = objects(*written(folder, MINIMAL, values))
    [container] = pod(rendered)["containers"]
    file = mounted(rendered, folder)
    file.resolve().write_text(file.read_text().replace("0.0.0.0:", "127.0.0.1:"))
    with Pep(file, folder, log_requests=False) as box:
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            path = container[probe]["httpGet"]["path"]
            wait_for(f"the {probe}", lambda path=path: get(health, path)[0] == 200)
        wait_for("the metrics", lambda: 'longhaul_process_up{process="envoy"} 1' in get(metrics, "/metrics")[1])
        for path in ("/", "/quitquitquit", "/config_dump", "/stats/prometheus", "/metrics/../quitquitquit"):
            assert get(metrics, path)[0] == 404
        box.child.process.terminate()
        grace_s = pod(rendered)["terminationGracePeriodSeconds"]
        assert box.child.process.wait(timeout=grace_s) == 0
    assert get(health, "/ready")[0] == 0


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, ""
    except OSError:
        return 0, ""


def test_metrics_are_on_loopback_until_they_are_enabled(folder: Path) -> None:
    def metrics_of(**values: Any) -> tuple[str | None, list[int]]:
        rendered = objects(*written(folder, MINIMAL, values))
        [container] = pod(rendered)["containers"]
        ports = [port["containerPort"] for port in container["ports"] if port["name"] == "metrics"]
        [file] = parsed(one(rendered, "ConfigMap", "box-longhaul")["data"]["longhaul.yaml"])
        return file["listen"].get("metrics"), ports

    assert metrics_of() == (None, [])
    assert metrics_of(metrics={"enabled": True, "port": 9155}) == ("0.0.0.0:9155", [9155])
    over_ipv6 = {"listen": {"health": "[::]:9902"}}
    assert metrics_of(longhaul=over_ipv6, metrics={"enabled": True}) == ("[::]:9910", [9910])
