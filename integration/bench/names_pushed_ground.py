"""The CoreDNS of a ground without Envoy, and queries of a remote's clients that the bench marks itself."""

from __future__ import annotations

import select
import socket
import struct
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from bench.names_pushed_intruder import PATH, hello
from harness.boxes.pep import parse_metrics
from harness.host.artifacts import built
from harness.host.ports import free_ports
from harness.host.processes import Child, end_with_parent
from harness.host.usage import resident_kib
from harness.host.waiting import wait_for

TOKEN = b"of bench"
OPTION = 65031
"""The EDNS option of coredns-plugin/push/wire/mark.go."""
AT_ONCE = 64
"""The most queries without a response. All of them fit a socket's buffer."""
WAIT_S = 2.0
"""After this time, the responses that lack are lost."""
COREFILE = """.:{port} {{
    bind 127.0.0.1
    prometheus 127.0.0.1:{metrics}
    push {socket} {followers}
    cache {{
        prefetch 2 1m 20%
        serve_stale 1h
        servfail 0
    }}
    template IN ANY . {{
        answer "{{{{ .Name }}}} 300 IN A 203.0.113.1"
    }}
}}
"""
"""The plugins of a ground, with a template in the place of a resolver."""


class Ground:
    """The running CoreDNS."""

    def __init__(self, folder: Path) -> None:
        self.port, self._metrics = free_ports(2)
        self.socket = folder / "pushed.sock"
        corefile = folder / "Corefile"
        corefile.write_text(
            COREFILE.format(port=self.port, metrics=self._metrics, socket=self.socket, followers=folder / "followers")
        )
        self._child = Child([built("coredns"), "-conf", corefile], folder / "coredns.log", env={"GOGC": "100"})

    def __enter__(self) -> Ground:
        wait_for("the metrics of CoreDNS", self._is_ready)
        return self

    def __exit__(self, *_: object) -> None:
        self._child.stop()

    def _is_ready(self) -> bool:
        try:
            return bool(self.metrics())
        except OSError:
            return False

    def metrics(self) -> dict[str, float]:
        """Returns its metrics."""
        with urlopen(f"http://127.0.0.1:{self._metrics}/metrics", timeout=10) as page:
            return parse_metrics(page.read().decode())

    @property
    def resident_kib(self) -> int:
        """Its memory now."""
        return resident_kib(self._child.process.pid)

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Opens the stream of a remote."""
        line = ["curl", "--silent", "--no-buffer", "--http2-prior-knowledge", "--unix-socket", str(self.socket)]
        line += ["--request", "POST", "--upload-file", ".", f"http://ground{PATH}"]
        with subprocess.Popen(
            line,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=end_with_parent,
        ) as remote:
            assert remote.stdin
            remote.stdin.write(hello(b"remote of a test", TOKEN))
            remote.stdin.flush()
            wait_for("the stream", lambda: self.metrics().get("coredns_push_streams") == 1)
            try:
                yield
            finally:
                remote.terminate()

    def ask(self, queries: Iterable[bytes]) -> int:
        """Sends queries. Returns the number of those without a response."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            made.connect(("127.0.0.1", self.port))
            lost = under_way = 0
            for query in queries:
                made.send(query)
                under_way += 1
                while under_way >= AT_ONCE:
                    came = received(made)
                    lost += 0 if came else under_way
                    under_way = under_way - came if came else 0
            while under_way and (came := received(made)):
                under_way -= came
            return lost + under_way


def received(made: socket.socket) -> int:
    """Waits for responses. Returns how many there are, 0 if none came in time."""
    if not select.select([made], [], [], WAIT_S)[0]:
        return 0
    for number in range(AT_ONCE):
        try:
            made.recv(4096, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return number
    return AT_ONCE


def query(number: int, name: str, client: int | None = None) -> bytes:
    """Returns a query for the A record of a name. That of a client has the mark of the stream."""
    header = struct.pack(">HHHHHH", number & 0xFFFF, 0x0100, 1, 0, 0, 0 if client is None else 1)
    labels = b"".join(bytes([len(label)]) + label for label in name.encode().split(b".")) + b"\0"
    question = header + labels + struct.pack(">HH", 1, 1)
    if client is None:
        return question
    mark = TOKEN + struct.pack(">IB", client, 0)
    return question + struct.pack(">BHHIHHH", 0, 41, 1232, 0, 4 + len(mark), OPTION, len(mark)) + mark
