"""A machine with systemd as its process 1: a root of `trees` in namespaces of its own, on a disk of its own."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.net.namespaces import Namespace

from .trees import Kind, tree

BOOT = Path(__file__).with_name("boot.sh")
CGROUPS = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
PREFIX = "lh-machine-"
DISK_BYTES = 3 << 30
_counter = itertools.count()


class Machine:
    """A running machine. The end of the context ends all its processes, mounts and files at once, as a power cut."""

    def __init__(self, name: str, kind: Kind, namespace: Namespace, folder: Path) -> None:
        self.name = name
        self.kind = kind
        self.namespace = namespace
        self.environment: dict[str, str] = {}
        """Added to the environment of what is typed."""
        self._folder = folder / f"machine-{name}"
        self._cgroup = _cgroups() / f"{PREFIX}{os.getpid()}-{next(_counter)}-{name}"
        self._child: Child | None = None
        self._pid = 0

    def __enter__(self) -> Self:
        root = tree(self.kind)
        self._folder.mkdir()
        disk = self._folder.with_suffix(".ext4")
        with disk.open("wb") as file:
            file.truncate(DISK_BYTES)
        subprocess.run(["mkfs.ext4", "-q", disk], check=True)
        boot = ["sh", BOOT, root, disk, self._folder, f"/run/netns/{self.namespace.name}", self._cgroup, self.name]
        self._child = Child(boot, self._folder.with_suffix(".log"), stop_timeout_s=0.1)
        try:
            self._pid = wait_for(f"process 1 of {self.name}", self._first_process, 30)
            wait_for(f"the boot of {self.name}", self._is_up, 60, 0.2)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._child:
            self._child.stop()
        remove(self._cgroup)

    def _first_process(self) -> int | None:
        assert self._child
        if self._child.process.poll() is not None:
            raise RuntimeError(f"{self.name} does not boot: {self._child.output()}")
        shell = self._child.process.pid
        for child in Path(f"/proc/{shell}/task/{shell}/children").read_text().split():
            # A process that is just beginning or ending has no program.
            with suppress(OSError):
                if Path(f"/proc/{child}/exe").readlink().name == "systemd":
                    return int(child)
        return None

    def _is_up(self) -> bool:
        return self.run("systemctl is-system-running", check=False).stdout.strip() in ("running", "degraded")

    def line(self, command: str, *, user: str = "root") -> list[str]:
        """The command line that types a line of shell in the home folder of a user."""
        enter = ["nsenter", "-t", str(self._pid), "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup"]
        home = "/root" if user == "root" else f"/home/{user}"
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        who = [] if user == "root" else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        variables = [f"PATH={path}", f"HOME={home}", f"USER={user}", "LANG=C.UTF-8", "TERM=dumb"]
        variables += [f"{key}={value}" for key, value in self.environment.items()]
        return [*enter, "env", "-i", f"--chdir={home}", *variables, *who, "bash", "-c", command]

    def run(
        self, command: str, *, user: str = "root", check: bool = True, timeout_s: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        """Types a line of shell, and waits for its end."""
        done = subprocess.run(
            self.line(command, user=user), capture_output=True, text=True, timeout=timeout_s, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if check and done.returncode != 0:
            raise RuntimeError(f"{self.name}# {command}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def write(self, path: str, content: str | bytes, mode: int = 0o644) -> None:
        """Writes a file, in place if it exists. Missing folders are made."""
        data = content.encode() if isinstance(content, str) else content
        place = f'mkdir -p "$(dirname {path})" && cat > {path} && chmod {mode:o} {path}'
        subprocess.run(self.line(place), input=data, check=True, capture_output=True, timeout=60)

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return subprocess.run(self.line(f"cat {path}"), check=True, capture_output=True, timeout=60).stdout


def reachable(desk: Machine, machines: Sequence[tuple[Machine, str]]) -> None:
    """Lets ssh of the desk's user root reach machines by names or addresses, as their users. The hosts' keys are
    trusted at the first contact."""
    desk.run("mkdir -p -m 700 .ssh && ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519")
    key = desk.read("/root/.ssh/id_ed25519.pub").decode().strip()
    desk.write("/root/.ssh/config", "StrictHostKeyChecking accept-new\nLogLevel ERROR\n", 0o600)
    for machine, address in machines:
        home = "/root" if machine.kind.user == "root" else f"/home/{machine.kind.user}"
        owner = machine.kind.user
        machine.write(f"{home}/.ssh/authorized_keys", f"{key}\n", 0o600)
        machine.run(f"chown -R {owner}: {home}/.ssh && chmod 700 {home}/.ssh")
        desk.run(f"echo {address} {machine.name} >> /etc/hosts")


def sweep() -> None:
    """Removes the cgroups of killed runs. Their machines ended with them."""
    for path in _cgroups().glob(f"{PREFIX}*"):
        owner = path.name.removeprefix(PREFIX).split("-", 1)[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            remove(path)


def remove(cgroup: Path) -> None:
    """Ends what is left in a cgroup of a machine, and removes it with those below."""
    assert cgroup.name.startswith(PREFIX), cgroup
    if not cgroup.is_dir():
        return
    (cgroup / "cgroup.kill").write_text("1")
    wait_for(f"the end of {cgroup.name}", lambda: "populated 0" in (cgroup / "cgroup.events").read_text(), 20)
    for folder in sorted(cgroup.rglob("*"), key=lambda path: len(path.parts), reverse=True):
        if folder.is_dir():
            folder.rmdir()
    cgroup.rmdir()


def _cgroups() -> Path:
    """Where cgroup2 is mounted, beside or instead of its older form."""
    for place in CGROUPS:
        if (place / "cgroup.procs").exists() and (place / "cgroup.controllers").exists():
            return place
    raise RuntimeError("cgroup2 is not mounted")
