"""The quick starts of the guide, as they are written: the commands of the page are typed over ssh at machines that have
just been installed, in its order, and their time is measured."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from bench.operator_bed import GROUND, Bed, home
from harness.delivery.walkthrough import Step, steps
from harness.host.artifacts import REPOSITORY
from harness.machines.machine import Machine
from harness.machines.trees import UBUNTU, Kind

GUIDE = REPOSITORY / "docs" / "src"
PAIR, ONE_BOX = "quick-start-pair.md", "quick-start-one-box.md"
COPIES = ("scp ",)
"""Commands whose time is the link's: they copy the package."""
LIMIT_S = 180
"""The time after which a command is given up."""


@dataclass
class Typed:
    """One command."""

    machine: str
    command: str
    seconds: float
    code: int
    said: str


@dataclass
class Walked:
    """One quick start."""

    page: str
    commands: list[Typed] = field(default_factory=list)
    wrong: str = ""
    """The first command that failed, with its output. The walk ends there."""

    @property
    def machine_s(self) -> float | None:
        """The time of all commands up to the first page, without copies of the package. None if no page came."""
        if self.wrong:
            return None
        return sum(one.seconds for one in self._to_page() if not one.command.startswith(COPIES))

    @property
    def copies_s(self) -> float:
        """The time of the copies of the package."""
        return sum(one.seconds for one in self._to_page() if one.command.startswith(COPIES))

    def _to_page(self) -> list[Typed]:
        first = next((n for n, one in enumerate(self.commands) if one.machine == "client"), len(self.commands))
        return self.commands[: first + 1]

    def lines(self) -> Iterable[str]:
        """Each command with its time, for a report."""
        for one in self.commands:
            code = f", exit {one.code}" if one.code else ""
            yield f"{one.machine}: {one.command[:100]}: {one.seconds:.2f} s{code}"
        if self.wrong:
            yield self.wrong


def walk(bed: Bed, page: str, kind: Kind) -> Walked:
    """Types a page of the guide from its top to its end, or to the first command that fails."""
    walked = Walked(page)
    for step in steps((GUIDE / page).read_text()):
        if not meant_for(step, kind):
            continue
        if step.path:
            write(bed.machine(step.machines[0]), step.path, step.content)
        for machine in step.machines:
            for command in step.commands:
                walked.commands.append(one := type_at(bed, machine, command))
                if one.code:
                    walked.wrong = f"{machine}# {command}: exit {one.code}: {one.said[-1500:]}"
                    return walked
                if step.printed_by and not printed(walked.commands, step.printed_by, command):
                    walked.wrong = f"line {step.line}: `{step.printed_by}` prints no such command: {command}"
                    return walked
    return walked


def meant_for(step: Step, kind: Kind) -> bool:
    """True unless the page says that a block is for the other distribution."""
    return step.only in ("", "Ubuntu" if kind is UBUNTU else "Debian")


def printed(commands: list[Typed], printer: str, command: str) -> bool:
    """True if an earlier command has printed this one."""
    return any(f"  {command}\n" in one.said for one in commands if one.command.startswith(printer))


def write(machine: Machine, path: str, content: str) -> None:
    """Puts a file of the page where its reader would."""
    machine.write(path, content)


def type_at(bed: Bed, machine: str, command: str) -> Typed:
    """Types a command: at a client, at the desk, or over ssh from there, with sudo where root may not log in."""
    if machine == "client":
        folder = bed.folder / "client"
        folder.mkdir(exist_ok=True)
        line = bed.clients.inside(["env", f"--chdir={folder}", f"CURL_CA_BUNDLE={bed.authority.files.cert}"])
        line += ["bash", "-c", command]
    elif machine == "desk":
        line = bed.machine("desk").line(command)
    else:
        line = login(bed, machine, command)
    began = time.monotonic()
    try:
        done = subprocess.run(
            line, capture_output=True, text=True, timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL
        )
        code, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        code, said = 124, f"no end within {LIMIT_S} s"
    return Typed(machine, command, time.monotonic() - began, code, said)


def login(bed: Bed, name: str, command: str) -> list[str]:
    """The command line of a login at a machine: by ssh from the desk, or at its own console where there is no desk.
    Where root may not log in, the user has begun with `sudo -i`."""
    machine = bed.machine(name)
    line = f"cd {home(machine)} && {command}"
    if machine.kind.user != "root":
        line = f"sudo bash -c {shlex.quote(line)}"
    if "desk" not in bed.machines:
        return machine.line(line, user=machine.kind.user)
    at = GROUND if name == "ground" else name
    return bed.machine("desk").line(f"ssh {machine.kind.user}@{at} {shlex.quote(line)}")
