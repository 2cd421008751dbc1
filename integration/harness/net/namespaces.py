"""Network namespaces whose names tell their owner, and commands inside them.

A namespace is called lh-PID-NUMBER-ROLE, after the process that made it. So `sweep` can remove those of a killed run,
and leaves those of another run alone. Nothing outside these namespaces changes. A command that needs another
/etc/resolv.conf or /etc/hosts gets a bind mount in its own mount namespace.
"""

from __future__ import annotations

import itertools
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

PREFIX = "lh-"
_counter = itertools.count()


def _run(command: Sequence[str], *, timeout_s: float = 60.0, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done


class Place(Protocol):
    """A place for processes, such as a namespace."""

    def inside(self, command: Sequence[str | Path]) -> list[str]:
        """Returns the command line that runs `command` there."""
        ...


class Namespace:
    """One network namespace with loopback up and IPv6 off. The addresses of the bed are IPv4."""

    def __init__(self, role: str, *, resolv_conf: Path | None = None) -> None:
        self.name = f"{PREFIX}{os.getpid()}-{next(_counter)}-{role}"
        self.resolv_conf = resolv_conf
        self.hosts: Path | None = None

    def __enter__(self) -> Self:
        _run(["ip", "netns", "add", self.name])
        try:
            self.ip("link", "set", "lo", "up")
            self.sysctl("net.ipv6.conf.all.disable_ipv6", 1)
            self.sysctl("net.ipv6.conf.default.disable_ipv6", 1)
            # The kernel would look for duplicates of a new address for 2 s. A device solicits no neighbour meanwhile.
            self.sysctl("net.ipv6.conf.default.accept_dad", 0)
            # Every load must meet the network as the first one did, without windows that the kernel remembers.
            self.sysctl("net.ipv4.tcp_no_metrics_save", 1)
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.remove()

    def remove(self) -> None:
        """Ends the processes inside, and deletes the namespace with its devices, routes and rules."""
        remove(self.name)

    def inside(self, command: Sequence[str | Path]) -> list[str]:
        """Returns the command line that runs `command` in this namespace, with its resolv.conf and its hosts if it has
        them."""
        enter = ["nsenter", f"--net=/run/netns/{self.name}", "--"]
        covers = {"/etc/resolv.conf": self.resolv_conf, "/etc/hosts": self.hosts}
        if mounts := [f"mount --bind {shlex.quote(str(own))} {place}" for place, own in covers.items() if own]:
            enter += ["unshare", "--mount", "sh", "-c", " && ".join([*mounts, 'exec "$@"']), "sh"]
        return enter + [str(part) for part in command]

    def run(
        self, *command: str | Path, timeout_s: float = 30.0, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command inside to its end."""
        return _run(self.inside(command), timeout_s=timeout_s, check=check)

    def ip(self, *arguments: str) -> str:
        """Runs the command `ip` inside and returns its output."""
        return _run(["ip", "-n", self.name, *arguments]).stdout

    def sysctl(self, key: str, value: int | str) -> None:
        """Sets a kernel parameter of this namespace."""
        _run(["nsenter", f"--net=/run/netns/{self.name}", "--", "sysctl", "-qw", f"{key}={value}"])

    def forget_connections(self) -> None:
        """Makes the packet filter inside forget every connection. Those that are open go on as new ones."""
        self.run(sys.executable, Path(__file__).with_name("conntrack.py"))

    def processes(self) -> list[int]:
        """Returns the ids of the processes inside."""
        return [int(pid) for pid in _run(["ip", "netns", "pids", self.name], check=False).stdout.split()]


def veth(left: Namespace, left_device: str, right: Namespace, right_device: str) -> None:
    """Joins two namespaces with an Ethernet cable, whose ends are up."""
    _run(["ip", "-n", left.name, "link", "add", left_device, "type", "veth",
          "peer", "name", right_device, "netns", right.name])  # fmt: skip
    left.ip("link", "set", left_device, "up")
    right.ip("link", "set", right_device, "up")


def remove(name: str) -> None:
    """Deletes one of our namespaces, and ends the processes in it. Only test runs put processes there."""
    assert name.startswith(PREFIX), name
    for pid in _run(["ip", "netns", "pids", name], check=False).stdout.split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            continue
    _run(["ip", "netns", "delete", name], check=False)


def ours() -> list[str]:
    """Returns the names of all existing namespaces that this process made."""
    return [name for name in _all() if _owner(name) == os.getpid()]


def sweep() -> list[str]:
    """Removes the namespaces of killed runs. Returns their names."""
    stale = [name for name in _all() if not Path(f"/proc/{_owner(name)}").exists()]
    for name in stale:
        remove(name)
    return stale


def _all() -> list[str]:
    folder = Path("/run/netns")
    return sorted(path.name for path in folder.glob(f"{PREFIX}*-*")) if folder.is_dir() else []


def _owner(name: str) -> int:
    digits = name.removeprefix(PREFIX).split("-", 1)[0]
    return int(digits) if digits.isdigit() else 0
