"""The commands by which an operator looks for a fault, at a pair that has none: `check` of the running file, `netcheck`
and `bugreport`."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

from bench.operator_bed import DOH, IMG, WWW, Bed
from bench.operator_faults import CONFIG
from harness.machines.machine import Machine
from harness.net.topology import CLIENT

OWN_RUN = re.compile(r"^(error\b.*|.*\b(?:in use|stop it)\b.*)$", re.M)
"""The lines of `check` that are wrong about a box that runs well: errors, and ports that it has itself."""
KEY_LINE = re.compile(r"^[A-Za-z0-9+/=]{24,}$", re.M)
BODY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\n(.*?)-----END", re.S)
NO_COMMAND = 2
"""The exit code for a command that does not exist."""


def own_run(machine: Machine) -> list[str]:
    """The lines with which `longhaul check` finds fault in the file of the run, on the machine of the run."""
    wrong = []
    for options in ("", "--here "):
        done = machine.run(f"longhaul check {options}{CONFIG}", check=False)
        said = done.stdout + done.stderr
        found = [line.strip() for line in OWN_RUN.findall(said)]
        if done.returncode and not found:
            found = [f"exit {done.returncode}"]
        wrong += [f"{machine.name}: check {options}: {line}" for line in found]
    return wrong


def netcheck(machine: Machine) -> tuple[float | None, str]:
    """The seconds of `longhaul netcheck`, and its output. None if there is no such command."""
    for line in (f"longhaul netcheck {CONFIG}", "longhaul netcheck"):
        began = time.monotonic()
        done = machine.run(line, check=False)
        if done.returncode != NO_COMMAND:
            return time.monotonic() - began, done.stdout + done.stderr
    return None, done.stderr


def bugreport(bed: Bed, machine: Machine) -> tuple[list[str] | None, str]:
    """The secrets that a bug report of a machine has: keys, clients' addresses and names of sites. None if there is no
    such command."""
    done = machine.run(f"mkdir -p /root/report && cd /root/report && longhaul bugreport {CONFIG}", check=False)
    if done.returncode == NO_COMMAND:
        done = machine.run("cd /root/report && longhaul bugreport", check=False)
    if done.returncode == NO_COMMAND:
        return None, done.stderr
    said = done.stdout + done.stderr
    tar = machine.run(r"ls -t /root/report/*.tar* | head -1", check=False).stdout.strip()
    named = re.search(r"\S+\.tar\S*\b", said)
    if not tar and named:
        tar = named[0]
    if not tar:
        return [f"{machine.name}: no tar: {said[-300:]}"], said
    folder = bed.folder / f"report-{machine.name}"
    folder.mkdir()
    (folder / "report.tar").write_bytes(machine.read(tar))
    subprocess.run(["tar", "-C", folder, "-xf", folder / "report.tar"], check=True)
    (folder / "report.tar").unlink()
    return secrets(folder, needles(machine)), said


def needles(machine: Machine) -> dict[str, str]:
    """The texts that must not be in a report, and their kind."""
    keys = machine.run("cat /etc/longhaul/*.key /etc/longhaul/*.pem", check=False).stdout
    lines = {line: "a private key" for body in BODY.findall(keys) for line in KEY_LINE.findall(body)}
    names = {WWW: "the name of a site", IMG: "the name of a site", DOH: "the name of a site"}
    return lines | names | {CLIENT: "the address of a client", "PRIVATE KEY": "a private key"}


def secrets(folder: Path, texts: dict[str, str]) -> list[str]:
    """Every file that has one of the texts."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_text(errors="replace")
            found += [f"{path.relative_to(folder)}: {kind}" for text, kind in texts.items() if is_in(text, content)]
    return sorted(set(found))


def is_in(text: str, content: str) -> bool:
    """True if the content has it as a whole. An address may be the beginning of a longer one."""
    return re.search(rf"(?<![\w.]){re.escape(text)}(?![\w.]*\d)", content) is not None
