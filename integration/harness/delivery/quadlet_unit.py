"""The quadlet on a machine with systemd and a podman that knows it: copied, started, killed, and stopped as a unit."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from harness.boxes.pep import write_config
from harness.host.waiting import wait_for
from harness.machines.machine import Machine
from harness.machines.trees import DEBIAN
from harness.net.namespaces import Namespace
from harness.origins.program import Origins

from .containers import DEPLOY, limited
from .packages import STORE, images
from .small_site import edge, serves, site

WITH_PODMAN = replace(
    DEBIAN,
    name="debian-13-podman",
    suite="trixie",
    packages=("podman", "crun", "netavark"),
    files={
        # The machine's root is an overlay already, and no controller of control groups belongs to it.
        "etc/containers/storage.conf": '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\n'
        'graphroot = "/var/lib/containers/storage"\n',
        "etc/containers/containers.conf": "[containers]\npids_limit = 0\n",
    },
)
"""Debian 12's podman has no generator of units."""
START_S = 240


def follow(folder: Path) -> None:
    """Starts the box as a unit, loads a page, and does so again after its container was killed."""
    archive = folder / "image.tar"
    _save(archive)
    with (
        Namespace("host") as namespace,
        Origins(site(folder), folder, namespace),
        Machine("box", WITH_PODMAN, namespace, folder) as box,
    ):
        box.write("/root/image.tar", archive.read_bytes())
        archive.unlink()
        box.run("podman load --quiet --input image.tar && rm image.tar", timeout_s=START_S)
        etc = folder / "etc"
        etc.mkdir()
        write_config(etc, edge("/var/cache/longhaul"), ["example.org"])
        for file in etc.iterdir():
            box.write(f"/etc/longhaul/{file.name}", file.read_bytes())
        for file in (DEPLOY / "quadlet").iterdir():
            box.write(f"/etc/containers/systemd/{file.name}", limited(file.read_text()))
        box.run("systemctl daemon-reload && systemctl start longhaul", timeout_s=START_S)
        serves(namespace, folder)
        box.run("podman exec longhaul longhaul status --state /var/lib/longhaul")
        first = _main(box)
        box.run("podman kill --signal KILL longhaul")
        wait_for("another container", lambda: _main(box) not in ("0", first) and _is_active(box), START_S, 0.5)
        serves(namespace, folder)
        box.run("systemctl stop longhaul", timeout_s=START_S)
        assert box.run("podman ps --quiet --all").stdout == ""
        volumes = box.run("podman volume ls --quiet").stdout.split()
        assert sorted(volumes) == ["systemd-longhaul-cache", "systemd-longhaul-state"], volumes


def _save(archive: Path) -> None:
    store = ["--root", STORE / "root", "--runroot", STORE / "run", "--storage-driver", "vfs"]
    line = [
        "buildah",
        *store,
        "push",
        "--quiet",
        images()["host"].name,
        f"oci-archive:{archive}:{images()['host'].name}",
    ]
    subprocess.run(line, check=True, capture_output=True, timeout=300)


def _main(box: Machine) -> str:
    return box.run("systemctl show --property MainPID --value longhaul").stdout.strip()


def _is_active(box: Machine) -> bool:
    return box.run("systemctl is-active longhaul", check=False).stdout.strip() == "active"
