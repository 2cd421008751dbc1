"""Instructions of a server by request, counted by callgrind: they hardly depend on the load of the machine.

Only instructions in user space count, those of V8's generated code included. The kernel's work is not in them.
"""

from __future__ import annotations

import http.client
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.contenders import Command, wait_until_listening
from harness.host.artifacts import Missing
from harness.host.processes import Child
from harness.host.usage import cores, pinned, processes

START_S = 600.0
"""Wasm modules are compiled at the start, and under valgrind that takes a minute on a busy machine."""

BROWSER = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36",
    "Accept": "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
    "Accept-Encoding": "gzip, deflate",
    "Accept-Language": "en-US,en;q=0.9",
    "Referer": "http://www.example.org/",
    "Connection": "keep-alive",
}
"""The fields of a browser's request over http."""


@dataclass
class Counted:
    """A server that runs under callgrind, which counts only on request."""

    name: str
    port: int
    child: Child
    folder: Path

    def by_request(self, host: str, path: str, requests: int, warm: int = 100, **fields: str) -> float:
        """Returns the instructions of one GET on a persistent connection, after some that are not counted."""
        self._get(host, path, warm, fields)
        self._tell("instrumentation on")
        # Valgrind translates all code again when counting begins.
        self._get(host, path, warm, fields)
        self._dump()
        self._get(host, path, requests, fields)
        counted = self._dump()
        self._tell("instrumentation off")
        return counted / requests

    def _get(self, host: str, path: str, count: int, fields: dict[str, str]) -> None:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {**BROWSER, "Host": host, **{name.replace("_", "-"): value for name, value in fields.items()}}
        for _ in range(count):
            client.request("GET", path, headers=headers)
            answer = client.getresponse()
            answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{self.name}: {path}: {answer.status}")
        client.close()

    def _dump(self) -> int:
        """Returns the instructions since the last dump, of all processes of the server."""
        before = set(self.folder.glob("callgrind.out*"))
        self._tell("dump")
        new = set(self.folder.glob("callgrind.out*")) - before
        found: dict[str, int] = {}
        for file in new:
            pid = file.name.split(".")[2]
            counts = re.findall(r"^(?:totals|summary): (\d+)", file.read_text(errors="replace"), re.MULTILINE)
            found[pid] = max(found.get(pid, 0), *map(int, counts))
        if not found:
            raise RuntimeError(f"callgrind wrote no total: {self.child.output()[-1000:]}")
        return sum(found.values())

    def _tell(self, words: str) -> None:
        # vgdb interrupts the process by its own means, also while it waits for a connection.
        for process in processes(self.child.process.pid):
            command = ["vgdb", f"--vgdb-prefix={self.folder}/vgdb", f"--pid={process.name}", *words.split()]
            subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)


def without_flushes(command: Command) -> Command:
    """The command of an Envoy that updates no statistics by a timer, because that is no work of a request."""
    configuration = Path(shlex.split(str(command[-1]))[-1])
    text = configuration.read_text()
    if configuration.suffix == ".json":
        configuration.write_text(json.dumps({**json.loads(text), "stats_flush_on_admin": True}))
    else:
        configuration.write_text(f"{text}\nstats_flush_on_admin: true\n")
    return command


@contextmanager
def counted(name: str, command: Command, folder: Path, port: int) -> Iterator[Counted]:
    """Starts a server under callgrind, and waits until it listens on a port."""
    if shutil.which("valgrind") is None:
        raise Missing("valgrind is not installed (Debian package valgrind)")
    folder.mkdir(exist_ok=True)
    valgrind = [
        "valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/callgrind.out.%p",
        f"--vgdb-prefix={folder}/vgdb", "--vgdb=yes", "--max-threads=2000", "--trace-children=yes",
    ]  # fmt: skip
    with Child(pinned([*valgrind, *command], cores()[0]), folder / "log") as child:
        wait_until_listening(child, "127.0.0.1", port, START_S)
        yield Counted(name, port, child, folder)
