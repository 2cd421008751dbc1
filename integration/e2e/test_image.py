"""The container image, started as a restricted pod starts it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.boxes.pep import write_config
from harness.delivery.packages import Image, images
from harness.delivery.roots import USER, Root
from harness.delivery.small_site import edge, serves, site
from harness.host.processes import Child
from harness.net.namespaces import Namespace
from harness.origins.program import Origins

LIMIT_MB = 330
CAPABILITY = "security.capability"
PROGRAMS = "/usr/lib/longhaul"


@pytest.fixture(scope="module")
def image(root_bed: None) -> dict[str, Image]:  # noqa: ARG001 - order of set-up
    return images()


@pytest.fixture
def namespace(root_bed: None) -> Iterator[Namespace]:  # noqa: ARG001 - order of set-up
    with Namespace("pod") as one:
        yield one


def test_plain_serves_with_no_capability_no_new_privileges_and_a_root_that_is_read_only(
    image: dict[str, Image], namespace: Namespace, folder: Path
) -> None:
    namespace.sysctl("net.ipv4.ip_unprivileged_port_start", 0)
    etc = folder / "etc"
    etc.mkdir()
    write_config(etc, edge("/var/cache/longhaul"), ["example.org"])
    command = [f"{PROGRAMS}/longhaul", "run", "/etc/longhaul/longhaul.yaml", "--state", "/run/longhaul"]
    with image["plain"].unpacked() as files, Origins(site(folder), folder, namespace):
        pod = Root(files, namespace)
        with Child(pod.restricted(command, etc), folder / "pod.log", stop_timeout_s=20) as box:
            box.wait_for_output("ready", 120)
            said = Path(f"/proc/{box.process.pid}/status").read_text()
            assert f"Uid:\t{USER}\t{USER}\t{USER}\t{USER}" in said
            for line in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
                assert f"{line}:\t{0:016x}" in said
            assert "NoNewPrivs:\t1" in said
            assert probe(box).returncode == 0, probe(box).stdout
            serves(namespace, folder)
            # An access log contains the URLs of clients, so it is off by default.
            assert "/_/answer" not in box.output()
        assert probe(box).returncode != 0


def probe(box: Child) -> subprocess.CompletedProcess[str]:
    """The exec probe of deploy/README.md, as a kubelet runs it: in the container, as its user."""
    enter = ["nsenter", f"--target={box.process.pid}", "--mount", "--net", "--root", "--wd=/"]
    ids = [f"--setuid={USER}", f"--setgid={USER}", "--"]
    command = ["longhaul", "status", "--state", "/run/longhaul"]
    environment = {"PATH": "/usr/bin:/bin"}
    return subprocess.run([*enter, *ids, *command], capture_output=True, text=True, check=False, env=environment)


def test_only_host_bears_capabilities_and_neither_holds_a_file_twice(image: dict[str, Image]) -> None:
    for target in ("plain", "host"):
        assert image[target].megabytes < LIMIT_MB
        with image[target].unpacked() as files:
            capable = {path.name for path in (files / PROGRAMS[1:]).iterdir() if CAPABILITY in os.listxattr(path)}
            assert capable == ({"envoy", "coredns"} if target == "host" else set())
            once = subprocess.run(["du", "--summarize", "--bytes", files], capture_output=True, text=True, check=True)
            on_disk = int(once.stdout.split()[0]) / 1e6
            # Layers that hold a file twice are larger than the files on disk.
            assert image[target].megabytes < on_disk * 1.05
