"""A box under constant load while its configuration changes: a reload must not cost any client a request."""

from __future__ import annotations

import http.client
import re
import shutil
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from harness.host.artifacts import built
from harness.host.ports import free_ports
from harness.host.waiting import wait_for
from harness.net.authority import Authority

from .desk import ANSWER, WWW, Desk
from .pep import IS_NATIVE, Pep

OWN = "pep.example.org"
END = b"nothing to see here</p>\n"
"""The end of every page of the site. A truncated page lacks it."""
PAGE = ANSWER
DOWNLOAD_BYTES = 200_000
DOWNLOAD = f"/_/answer?body=noise&size={DOWNLOAD_BYTES}&chunk=1000&pause=50&header=cache-control:no-store"
"""A stream of ten seconds, which lasts for several changes."""
PAUSE_S = 0.02
"""The pause between two requests of one client. It leaves a small machine time to serve them."""


@dataclass
class Load:
    """Clients that send requests without end, and the outcomes of the requests."""

    desk: Desk
    tls: int
    trust: ssl.SSLContext
    pages: int = 0
    downloads: int = 0
    failed: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _count: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def running(self) -> Iterator[Load]:
        """Two clients that keep their connections, two that open one for each request, and three long downloads."""
        jobs: list[Callable[[], None]] = [self._keep, self._keep, self._anew, self._anew_over_tls]
        threads = [threading.Thread(target=job) for job in [*jobs, *[self._download] * 3]]
        for thread in threads:
            thread.start()
        try:
            wait_for("the load to run", lambda: self.pages > 20 or self.failed, timeout_s=90)
            yield self
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(60)

    def _keep(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.desk.http, timeout=30)
        while not self._stop.wait(PAUSE_S):
            self._page(connection, PAGE, WWW)
        connection.close()

    def _anew(self) -> None:
        while not self._stop.wait(PAUSE_S):
            connection = http.client.HTTPConnection("127.0.0.1", self.desk.http, timeout=30)
            self._page(connection, PAGE, WWW)
            connection.close()

    def _anew_over_tls(self) -> None:
        while not self._stop.wait(PAUSE_S):
            connection = _OwnName(self.tls, self.trust)
            self._page(connection, f"/{WWW}{PAGE}", f"{OWN}:{self.tls}")
            connection.close()

    def _download(self) -> None:
        while not self._stop.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", self.desk.http, timeout=30)
            try:
                connection.request("GET", DOWNLOAD, headers={"Host": WWW})
                answer = connection.getresponse()
                size = len(answer.read())
                if answer.status != 200 or size < DOWNLOAD_BYTES:
                    self._fail(f"download: {answer.status}, {size} bytes")
            except (OSError, http.client.HTTPException) as problem:
                self._fail(f"download: {problem!r}")
            self.downloads += 1
            connection.close()

    def _page(self, connection: http.client.HTTPConnection, path: str, host: str) -> None:
        try:
            connection.request("GET", path, headers={"Host": host})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200 or not body.endswith(END):
                self._fail(f"{host}: {answer.status}, ends with {body[-80:]!r}")
        except (OSError, http.client.HTTPException) as problem:
            self._fail(f"{host}: {problem!r}")
            connection.close()
        with self._count:
            self.pages += 1

    def _fail(self, what: str) -> None:
        with self._count:
            self.failed.append(what)


class _OwnName(http.client.HTTPSConnection):
    """A TLS connection to the proxy by its own name, which no resolver here knows."""

    def __init__(self, port: int, trust: ssl.SSLContext) -> None:
        super().__init__("127.0.0.1", port, timeout=30, context=trust)
        self._trust = trust

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._trust.wrap_socket(self.sock, server_hostname=OWN)


MODULE = "longhaul_filters.so" if IS_NATIVE else "url_rewrite.wasm"
"""The module that the box replaces."""


class Box:
    """A running desk with TLS and its own filter, and its changes. A change returns once it is applied or refused."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.authority = Authority(desk.folder)
        self.tls = free_ports(1)[0]
        self.module = desk.etc / MODULE
        shutil.copyfile(built(MODULE), self.module)
        self._renew()
        self.sections: dict[str, Any] = {
            "proxy": {**desk.config["proxy"], "secure_names": [OWN]},
            "listen": {**desk.config["listen"], "tls": f"127.0.0.1:{self.tls}"},
            "tls": {"terminate": [{"names": [OWN], "cert": "own.pem", "key": "own.key"}]},
        }
        self._pep: Pep | None = None
        self.changes = self.refusals = 0

    @contextmanager
    def running(self) -> Iterator[Box]:
        """Longhaul runs."""
        other = {"LONGHAUL_NATIVE_FILTERS" if IS_NATIVE else "LONGHAUL_URL_REWRITE": str(self.module)}
        with Pep(self.desk.write(**self.sections), self.desk.folder, environment=other) as self._pep:
            yield self

    @property
    def pep(self) -> Pep:
        assert self._pep
        return self._pep

    def load(self) -> Load:
        """Clients for it."""
        trust = ssl.create_default_context(cafile=str(self.authority.files.cert))
        return Load(self.desk, self.tls, trust)

    def listeners(self) -> bytes:
        """The rendered listeners with all their filter chains."""
        return (self.pep.state / "rendered" / "lds.yaml").read_bytes()

    # Each of these is one change.

    def write(self, **sections: Any) -> None:
        """Writes other settings, which stay."""
        self.sections.update(sections)
        self._taken(lambda: self.desk.write(**self.sections))

    def list_names(self, *names: str) -> None:
        """Writes another allowlist."""
        self._taken(lambda: self._put("steered.txt", "".join(f"{name}\n" for name in names).encode()))

    def renew(self) -> None:
        """Writes another certificate of the same authority."""
        self._taken(self._renew)

    def exchange_filter(self, mark: bytes) -> None:
        """Writes another module. A custom section of a .wasm, or bytes behind a .so, change nothing that it does."""
        section = mark if IS_NATIVE else b"\x00" + bytes([1 + len(mark), len(mark)]) + mark
        self._taken(lambda: self._put(MODULE, built(MODULE).read_bytes() + section))

    def break_file(self, name: str, broken: Callable[[bytes], bytes], complaint: str) -> None:
        """Breaks a file, which is refused with `complaint`. Then restores the good one."""
        good = (self.desk.etc / name).read_bytes()
        before = self._outcomes()
        self._put(name, broken(good))
        wait_for(f"{name} to be refused", lambda: self._outcomes() > before, timeout_s=90)
        said = self.pep.output()[self._at(before) :]
        assert "and was refused" in said, said
        assert complaint in said, said
        self.refusals += 1
        self.changes += 1
        before = self._outcomes()
        self._put(name, good)
        wait_for(f"the good {name}", lambda: self._outcomes() > before, timeout_s=90)

    def _taken(self, change: Callable[[], object]) -> None:
        before = self._outcomes()
        change()
        wait_for("the change to be taken", lambda: self._outcomes() > before, timeout_s=90)
        said = self.pep.output()[self._at(before) :]
        assert "refuse" not in said, said
        self.changes += 1

    def _outcomes(self) -> int:
        return len(self._found())

    def _at(self, number: int) -> int:
        return self._found()[number].start()

    def _found(self) -> list[re.Match[str]]:
        return list(
            re.finditer(r"^\S+ \w+ longhaul: .* changed(: |, and was refused)", self.pep.output(), re.MULTILINE)
        )

    def _put(self, name: str, content: bytes) -> None:
        path = self.desk.folder / f"{name}.new"
        path.write_bytes(content)
        path.replace(self.desk.etc / name)

    def _renew(self) -> None:
        issued = self.authority.issue(OWN)
        for file, name in ((issued.cert, "own.pem"), (issued.key, "own.key")):
            file.replace(self.desk.etc / name)


def twenty_changes(box: Box) -> None:
    """Of everything that can change while running, five of them broken; none of them touches a filter chain."""
    upstream = box.desk.config["upstream"]
    for n in range(3):
        box.write(rewrite={"level": ("off", "safe", "full")[n], "target": "http"})
        box.list_names("example.org", f"more-{n}.example.org")
        box.renew()
        box.break_file(*BROKEN[n])
        box.exchange_filter(b"change-%d" % n)
    box.write(upstream={**upstream, "ports": [80, 443, 8080]})
    box.break_file(*BROKEN[3])
    box.write(upstream={**upstream, "map": {**upstream["map"], "another.example.org": "127.78.0.2:80"}})
    box.break_file(*BROKEN[4])
    box.write(upstream=upstream, rewrite={"level": "safe", "target": "http"})


BROKEN: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("longhaul.yaml", lambda good: good + b"}:{\n", "longhaul.yaml:"),
    ("longhaul.yaml", lambda good: good.replace(b"role: ", b"roll: 1\nrole: ", 1), "unknown key `roll`"),
    ("own.pem", lambda _: b"-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----\n", "own.pem"),
    (MODULE, lambda good: good[: len(good) // 2], "does not load the module" if IS_NATIVE else "refuses it"),
    ("longhaul.yaml", lambda good: good.replace(b'"target": "http"', b'"target": "moon"'), "moon"),
]
