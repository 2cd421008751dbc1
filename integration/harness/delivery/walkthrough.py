"""Pages whose commands a test types: what each block of code is, and machines to type it on.

A comment before a block names its place: `<!-- on: ship, ground -->` for commands, `<!-- file: ship PATH -->` for the
content of a file. `<!-- on: ground, printed by: COMMAND -->` promises that COMMAND prints these commands. With
`<!-- on: ship; Ubuntu -->` they are for that distribution alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.host.processes import Child

from .roots import Root

BLOCK = re.compile(
    r"(?:<!-- (?P<kind>on|file): (?P<place>[^>]*) -->\n)?^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.M | re.S
)
REMOTE = re.compile(r"ssh (?P<host>\S+) (?P<command>.*)", re.S)


@dataclass(frozen=True)
class Step:
    """One block of a page: commands for each of some machines in turn, or a file for one machine."""

    line: int
    machines: tuple[str, ...]
    commands: tuple[str, ...] = ()
    printed_by: str = ""
    path: str = ""
    content: str = ""
    only: str = ""
    """The distribution that the block is for. Empty for all."""


def configuration(text: str) -> list[str]:
    """The lines of a YAML file that are neither empty nor comments."""
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def typed(block: str) -> tuple[str, ...]:
    """The commands of a block of shell, without comments and continued lines."""
    lines = re.sub(r" *\\\n *", " ", block).splitlines()
    return tuple(one for one in lines if one and not one.startswith("#"))


def steps(page: str) -> list[Step]:
    """Every block of code of a page. A block without a comment that names its place is an error."""
    found = []
    for block in BLOCK.finditer(page):
        line = page.count("\n", 0, block.start("language")) + 1
        if block["kind"] == "file":
            machine, path = block["place"].split()
            found.append(Step(line, (machine,), path=path, content=block["body"]))
        elif block["kind"] == "on":
            place, _, only = block["place"].partition("; ")
            machines, _, printer = place.partition(", printed by: ")
            found.append(Step(line, tuple(machines.split(", ")), typed(block["body"]), printer, only=only))
        else:
            raise ValueError(f"line {line}: no comment says where this block belongs")
    return found


@dataclass
class Client:
    """A machine whose commands run as they are, with some variables in their environment."""

    enter: Sequence[str]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def line(self, command: str) -> list[str]:
        """The command line that types it."""
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return [*self.enter, "env", f"--chdir={self.folder}", *variables, "bash", "-c", command]


class Machine:
    """A fresh Debian with the part of a service manager that a quick start needs. The end of the context stops its
    services."""

    def __init__(self, root: Root, folder: Path) -> None:
        self.root = root
        self._folder = folder
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        # The unit gives ports below 1024 by a capability; this namespace by its own setting.
        self.root.namespace.sysctl("net.ipv4.ip_unprivileged_port_start", 0)
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def line(self, command: str) -> list[str]:
        """The command line that types it, in the folder of user root."""
        return self.root.inside(["bash", "-c", f"cd /root && {command}"])

    def start(self, unit: str) -> None:
        """Starts a unit of the package as systemd would: its checks, its user, its wait until it serves."""
        name, _, instance = unit.partition("@")
        text = self.root.path(f"/lib/systemd/system/{name}{'@' if instance else ''}.service").read_text()
        for folder in re.findall(r"^RuntimeDirectory=(.+)$", text, re.M):
            self.root.path(f"/run/{folder}").mkdir(exist_ok=True)
        user = "".join(re.findall(r"^User=(.+)$", text, re.M))
        for kind, line in re.findall(r"^(ExecStartPre|ExecStart)=(.+)$", text, re.M):
            command = self.root.inside(line.replace("%i", instance).split(), user=user)
            if kind == "ExecStartPre" or "Type=oneshot" in text:
                subprocess.run(command, check=True, capture_output=True, timeout=120)
            else:
                service = Child(command, self._folder / f"{name}.log", stop_timeout_s=20)
                self._stack.enter_context(service).wait_for_output("ready", 120)


class Typist:
    """Types commands. A command that a machine of a test cannot run is one of `_instead`; every other one is run as it
    is written."""

    def __init__(self, machines: Mapping[str, Machine | Client], hosts: Mapping[str, str]) -> None:
        """`hosts` are the machines that ssh reaches, by the words after `ssh`."""
        self._machines = machines
        self._hosts = hosts

    def type(self, machine: str, command: str) -> str:
        """Runs a command to its end and returns its output. Parts of a pipe run where ssh takes them."""
        places = [self._place(machine, part) for part in command.split(" | ")]
        if (replaced := self._instead(*places[-1])) is not None:
            return replaced
        text = b""
        for place, part in places:
            done = subprocess.run(
                self._machines[place].line(part), input=text, capture_output=True, check=False, timeout=300
            )
            assert done.returncode == 0, f"{place}# {part}\n{done.stdout.decode()}{done.stderr.decode()}"
            text = done.stdout
        return text.decode()

    def _place(self, machine: str, part: str) -> tuple[str, str]:
        remote = REMOTE.fullmatch(part)
        return (self._hosts[remote["host"]], remote["command"]) if remote else (machine, part)

    def _instead(self, place: str, command: str) -> str | None:
        """There is no service manager: units are started as it would, without being enabled. There is no ssh: a copy is
        one between folders."""
        words = command.split()
        if words[0] == "scp":
            self._copy(place, words[1], self._hosts[words[2].rstrip(":")])
            return ""
        if words[:3] != ["systemctl", "enable", "--now"]:
            return None
        for unit in words[3:]:
            machine = self._machines[place]
            assert isinstance(machine, Machine), f"{place} has no units"
            machine.start(unit)
        return ""

    def _copy(self, place: str, pattern: str, to: str) -> None:
        source, target = self._machines[place], self._machines[to]
        assert isinstance(source, Machine), f"{place} has no folder"
        assert isinstance(target, Machine), f"{to} has no folder"
        [file] = source.root.path("/root").glob(pattern)
        shutil.copy(file, target.root.path("/root"))
