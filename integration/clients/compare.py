"""Runs programs without Longhaul and with it, and says what differs."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.clients.commands import dig
from harness.host.artifacts import need_commands
from harness.host.waiting import wait_for
from harness.lab import boxes
from harness.lab.boxes import Boxes
from harness.net.authority import Authority
from harness.net.namespaces import Namespace
from harness.net.topology import RESOLVER

from .content import write_content
from .programs import PROGRAMS, Program
from .servers import DOMAINS, HERE, names, serving

AT_ONCE = 5
"""Runs of one program side by side."""
FIELDS = "content-(length|type|encoding|range)|etag|accept-ranges|last-modified"
SHELL = f"""
fields() {{
  tr -d '\\r' < "$1" | tr 'A-Z' 'a-z' | grep -E '^(http/|{FIELDS})' | sed 's,^http/[0-9.]* \\([0-9]*\\).*,\\1,' | sort
}}
mkdir kept
"""


@dataclass(frozen=True)
class Outcome:
    """The result of one run."""

    status: int | str
    output: str
    files: tuple[tuple[str, str], ...]
    """The kept files, each with size and digest."""

    def __str__(self) -> str:
        files = "".join(f"\n    {name} {what}" for name, what in self.files)
        return f"exit {self.status}{files}\n" + "".join(f"    {line}\n" for line in self.output.splitlines()[:30])


@dataclass
class Ways:
    """The running networks: an edge and a pair, each with its servers."""

    folder: Path
    www: Path
    ca: Path
    edge: Boxes
    pair: Boxes

    def places(self) -> dict[str, tuple[Namespace, str]]:
        """Returns each way to the servers: the network of the program, and the domain of the names. The first is that
        without Longhaul."""
        found = {"direct": (self.edge.internet, DOMAINS["steered"])}
        for box in (self.edge, self.pair):
            found |= {f"{box.name} {way}": (box.clients, domain) for way, domain in DOMAINS.items()}
        return found

    def run(self, program: Program, way: str) -> Outcome:
        """Runs a program once."""
        place, domain = self.places()[way]
        run = way.replace(" ", "-")
        home = self.folder / "runs" / f"{re.sub(r'[^a-z0-9]+', '-', program.name.lower())}-{run}"
        home.mkdir(parents=True)
        environment = {
            "D": domain, "CA": str(self.ca), "WWW": str(self.www), "RUN": run, "PY": sys.executable, "HERE": str(HERE),
            "JAVA": str(self.folder),
            "HOME": str(home), "LC_ALL": "C.UTF-8", "no_proxy": "*", "PATH": os.environ["PATH"],
        }  # fmt: skip
        command = place.inside(
            ["timeout", "--kill-after=5", str(program.timeout_s), "bash", "-c", SHELL + program.script]
        )
        done = subprocess.run(
            command, cwd=home, env=environment, capture_output=True, text=True, errors="replace", check=False
        )
        status = "timeout" if done.returncode in (124, 137) else done.returncode
        output = (done.stdout + done.stderr).replace(domain, "DOMAIN").replace(run, "RUN").replace(str(home), "HOME")
        kept = home / "kept"
        files = tuple(
            (str(path.relative_to(kept)).replace(domain, "DOMAIN"), _what(path))
            for path in sorted(kept.rglob("*")) if path.is_file()
        )  # fmt: skip
        shutil.rmtree(home)
        return Outcome(status, output, files)

    def differences(self, program: Program) -> dict[str, str]:
        """Returns the ways whose outcome is not the expected one, each with both. The expected one is that without
        Longhaul, but for the documented differences."""
        need_commands(*program.commands)
        ways = [way for way in self.places() if program.steered or "steered" not in way]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            outcomes = dict(zip(ways, pool.map(lambda way: self.run(program, way), ways), strict=True))
        direct = outcomes.pop("direct")
        assert program.proof in str(direct), f"it fails without Longhaul: {direct}"
        return {
            way: f"direct: {direct}  {way}: {found}"
            for way, found in outcomes.items()
            if (found != direct) != program.is_documented(way)
        }


def _what(path: Path) -> str:
    body = path.read_bytes()
    return f"{len(body)} {hashlib.sha256(body).hexdigest()[:16]}"


@contextmanager
def standing(folder: Path) -> Iterator[Ways]:
    """Runs an edge and a pair at once. Servers do not run as root, so each part of the folder's path is open."""
    folder.chmod(0o755)
    authority = Authority(folder)
    certificate = authority.issue(*(name for name in names() if "_" not in name))
    www = write_content(folder)
    if shutil.which("javac"):
        subprocess.run(["javac", "-d", folder, HERE / "Get.java"], check=True)
    runs = ["direct", *(f"{box}-{way}" for box in ("edge", "pair") for way in DOMAINS)]

    def start(kind: str) -> tuple[ExitStack, Boxes]:
        home = folder / kind
        home.mkdir(mode=0o755)
        with ExitStack() as stack:
            box = stack.enter_context(boxes.KINDS[kind](home, names(), [DOMAINS["steered"]], authority=authority))
            stack.enter_context(serving(home, www, box.internet, certificate, runs))
            return stack.pop_all(), box

    with ExitStack() as stack:
        # Programs end with the thread that started them, so these threads stay.
        pool = stack.enter_context(ThreadPoolExecutor(2))
        started = [pool.submit(start, kind) for kind in ("edge", "pair")]
        ready = []
        for one in started:
            opened, box = one.result()
            stack.enter_context(opened)
            ready.append(box)
        until_known(ready[-1])
        yield Ways(folder, www, authority.files.cert, *ready)


def until_known(pair: Boxes) -> None:
    """Waits until the pair knows the addresses of the names on its list. Before, it takes only web pages for them."""

    def knows(name: str, address: str) -> bool:
        return dig(name, "A", RESOLVER, namespace=pair.clients).addresses() == [address]

    for name, address in names().items():
        if name.endswith(DOMAINS["steered"]):
            wait_for(f"the address of {name}", partial(knows, name, address))


__all__ = ["PROGRAMS", "Outcome", "Program", "Ways", "standing"]
