"""The compose file and the quadlet, each started by its own program on podman, in a network of its own.

podman gets a store of its own, and the runtime that works beside older control groups. Where the tests may not raise
the limit of open files, the recipe's limit is cut to theirs.
"""

from __future__ import annotations

import os
import re
import resource
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.boxes.pep import write_config
from harness.host.artifacts import REPOSITORY, Missing, need_commands
from harness.host.waiting import wait_for
from harness.net.namespaces import Namespace
from harness.origins.program import Origins

from .packages import STORE, images
from .small_site import edge, serves, site

DEPLOY = REPOSITORY / "deploy"
COMPOSE = REPOSITORY / "target" / "venv-recipes" / "bin" / "podman-compose"
QUADLET = REPOSITORY / "target" / "tools" / "quadlet-4.9.5"
FILES = re.compile(r"(nofile[:=] ?)(\d+)")
READY_S = 120
PROCESSES = 4096
LEFT_OUT = ("--cgroups=split", "--ignore")
"""The control group of the unit, because no unit runs here, and an option of `volume create` that Debian 12's podman
lacks."""


class Podman:
    """podman with a store of its own, as a program on the PATH of the recipe."""

    def __init__(self, folder: Path, namespace: Namespace) -> None:
        need_commands("podman", "runc")
        images()
        self._namespace = namespace
        self.folder = folder / "podman"
        self.folder.mkdir()
        store = [f"--root={STORE / 'root'}", f"--runroot={STORE / 'run'}", "--storage-driver=vfs"]
        most = min(PROCESSES, resource.getrlimit(resource.RLIMIT_NPROC)[1])
        words = ["/usr/bin/podman", *store, "--runtime=runc", "--cgroup-manager=cgroupfs"]
        program = self.folder / "podman"
        # podman's own limit of processes is one that this user may not set.
        program.write_text(f"""#!/bin/sh
case "$1" in
    run | create) command=$1; shift; exec {shlex.join(words)} "$command" --ulimit nproc={most}:{most} "$@" ;;
    *) exec {shlex.join(words)} "$@" ;;
esac
""")
        program.chmod(0o755)

    def run(self, *line: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs a program that finds this podman."""
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}
        words = self._namespace.inside(["env", f"--chdir={self.folder}", *map(str, line)])
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=300)
        if check and done.returncode != 0:
            raise RuntimeError(f"{shlex.join(map(str, line))}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def is_well(self, container: str, state: str) -> bool:
        """True once the box in a container says so itself."""
        return (
            self.run("podman", "exec", container, "longhaul", "status", "--state", state, check=False).returncode == 0
        )


def limited(text: str) -> str:
    """Cuts the limit of open files to that of the tests."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return FILES.sub(lambda found: f"{found[1]}{min(int(found[2]), most)}", text)


@contextmanager
def host(folder: Path) -> Iterator[tuple[Podman, Namespace, Path]]:
    """A host with a site, and the folder that stands for its /etc/longhaul."""
    with Namespace("host") as namespace, Origins(site(folder), folder, namespace):
        etc = folder / "etc"
        etc.mkdir(mode=0o755)
        write_config(etc, edge("/var/cache/longhaul"), ["example.org"])
        podman = Podman(folder, namespace)
        yield podman, namespace, etc


def placed(text: str, etc: Path) -> str:
    """Mounts `etc` in place of the machine's own folder."""
    return limited(text).replace("/etc/longhaul:/etc/longhaul", f"{etc}:/etc/longhaul")


def follow_compose(folder: Path) -> None:
    """Starts the box by the compose file, loads a page, and stops it."""
    if not COMPOSE.exists():
        raise Missing("podman-compose is not installed: make target/venv-recipes/.ready")
    with host(folder) as (podman, namespace, etc):
        file = podman.folder / "compose.yaml"
        file.write_text(placed((DEPLOY / "compose" / "compose.yaml").read_text(), etc))
        try:
            podman.run(COMPOSE, "-f", file, "up", "--detach")
            name = podman.run("podman", "ps", "--format", "{{.Names}}").stdout.strip()
            wait_for("a box that is well", lambda: podman.is_well(name, "/var/lib/longhaul"), READY_S, 0.5)
            serves(namespace, folder)
        finally:
            podman.run(COMPOSE, "-f", file, "down", "--volumes", check=False)


def follow_quadlet(folder: Path) -> None:
    """Generates the units of the quadlet, and runs their command lines."""
    if not QUADLET.exists():
        raise Missing(f"podman's generator of units is not built: make {QUADLET.relative_to(REPOSITORY)}")
    with host(folder) as (podman, namespace, etc):
        lines = command_lines(folder, etc)
        try:
            for line in lines:
                podman.run(*line)
            wait_for("a box that is well", lambda: podman.is_well("longhaul", "/var/lib/longhaul"), READY_S, 0.5)
            serves(namespace, folder)
        finally:
            podman.run("podman", "rm", "--force", "longhaul", check=False)
            podman.run("podman", "volume", "rm", "systemd-longhaul-state", "systemd-longhaul-cache", check=False)


def command_lines(folder: Path, etc: Path) -> list[list[str]]:
    """The commands that systemd would run, the container's last, with its words for folders and names filled in."""
    units = folder / "units"
    shutil.copytree(DEPLOY / "quadlet", units)
    container = units / "longhaul.container"
    container.write_text(placed(container.read_text(), etc))
    environment = {**os.environ, "QUADLET_UNIT_DIRS": str(units)}
    done = subprocess.run(
        [QUADLET, "-dryrun"], env=environment, capture_output=True, text=True, check=True, timeout=60
    )  # fmt: skip
    found = re.findall(r"^ExecStart=/usr/bin/(podman .*)$", done.stdout, re.M)
    lines = [shlex.split(line.replace("%t/%N", str(folder / "unit"))) for line in found]
    lines = [[word for word in line if word not in LEFT_OUT] for line in lines]
    return sorted(lines, key=lambda line: "run" in line)
