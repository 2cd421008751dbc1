"""The targets of the attacks: an edge and a pair, each complete and running, with a hostile origin behind it."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.boxes.bed import PROXY_NAME, Bed
from harness.boxes.pair import GROUND_NAME, REDIRECTS, REMOTE_NAME, Ends, Pair, pair
from harness.boxes.pep import Pep
from harness.host.artifacts import REPOSITORY
from harness.host.processes import Child, whole_lines
from harness.lab import links
from harness.lab.contenders.base import intercept, rules
from harness.lab.line import FAR, NEAR, NEAR_DEVICE, NEAR_HOME, Line
from harness.net.authority import Authority
from harness.net.namespaces import Namespace
from harness.net.sockets import connected
from harness.net.topology import FORBIDDEN, INTERNET, PRIVATE_ADDRESS, PROXY, RESOLVER
from harness.origins.program import Origins, Site

from .wire import Http2, Reply, over_tls, request_bytes, send_bytes

ORIGIN = "203.0.113.200"
HOST = "hostile.example.org"
OTHER = "other.example.org"
"""A second name of the same origin."""
CANARY = "canary-private.example.org"

_numbers = itertools.count(1)


def fresh(kind: str = "case") -> str:
    """Returns a word that was never used before, so that no cache and no table knows the URL."""
    return f"{kind}-{next(_numbers)}"


@dataclass
class Target:
    """A target: access for clients, the memory that it uses, and the requests that reached the origin."""

    name: str
    folder: Path
    clients: Namespace
    internet: Namespace
    envoys: list[Pep]
    """The program of each box."""
    origin_log: Path
    origins: Origins
    authority: Authority
    has_tls: bool = False
    both: Pair | None = None
    _seen: int = field(default=0)

    def open(self, *, receive_bytes: int | None = None, timeout_s: float = 20.0):
        """Opens a client's connection to port 80 of the origin, which Longhaul intercepts."""
        return connected(self.clients, ORIGIN, 80, receive_bytes=receive_bytes, timeout_s=timeout_s)

    def open_tls(self, *alpn: str, receive_bytes: int | None = None, timeout_s: float = 20.0):
        """Opens a client's connection to the proxy's own https name."""
        plain = connected(self.clients, PROXY, 443, receive_bytes=receive_bytes, timeout_s=timeout_s)
        return over_tls(plain, PROXY_NAME, self.authority.files.cert, *alpn)

    def send(self, request: bytes, timeout_s: float = 20.0) -> Reply:
        """Sends bytes on their own connection, and returns the first response."""
        with self.open(timeout_s=timeout_s) as connection:
            return send_bytes(connection, request)

    def get(
        self, target: str, *headers: tuple[str, str], host: str = HOST, method: str = "GET", body: bytes = b""
    ) -> Reply:
        """Sends a well-formed request of a client."""
        return self.send(request_bytes(method, target, host, [*headers, ("Connection", "close")], body))

    def get_tls(self, target: str, *headers: tuple[str, str], host: str = PROXY_NAME) -> Reply:
        """Sends a request to the proxy's https name."""
        with self.open_tls() as connection:
            return send_bytes(connection, request_bytes("GET", target, host, [*headers, ("Connection", "close")]))

    def http2(self) -> Http2:
        """Opens HTTP/2 with prior knowledge on port 80."""
        return Http2(self.open())

    def http2_tls(self) -> Http2:
        """Opens HTTP/2 to the proxy's https name."""
        return Http2(self.open_tls("h2"))

    def heaps_mib(self) -> list[float]:
        """Returns the memory that each box's Envoy has allocated."""
        return [int(json.loads(pep.admin("/memory"))["allocated"]) / 2**20 for pep in self.envoys]

    def metric(self, name: str) -> float:
        """Returns a counter or gauge, as the sum over all Envoys and labels."""
        return sum(
            value
            for pep in self.envoys
            for key, value in pep.metrics().items()
            if key == name or key.startswith(name + "{")
        )

    def asked_of_origins(self) -> int:
        """Returns the number of requests to origins, as counted by the Envoy that sends them."""
        return int(
            sum(
                value
                for key, value in self.envoys[-1].metrics().items()
                if key.startswith("envoy_cluster_upstream_rq_total{") and 'envoy_cluster_name="origin_' in key
            )
        )

    def arrived(self, contains: str) -> list[dict[str, Any]]:
        """Returns the requests at the origin whose target contains a word."""
        return [one for line in whole_lines(self.origin_log) if contains in (one := json.loads(line))["target"]]

    def count_arrived(self) -> int:
        """Returns the number of requests that the origin has read so far."""
        return len(whole_lines(self.origin_log))

    def is_alive(self) -> bool:
        """Returns whether an ordinary client is served."""
        word = fresh("alive")
        return self.get(f"/say?b={word}").body == word.encode()


_more_records: dict[str, str] = {}


@contextmanager
def records(more: dict[str, str]) -> Iterator[None]:
    """Adds names to the beds that are made within this context."""
    _more_records.update(more)
    try:
        yield
    finally:
        _more_records.clear()


def _sites(authority: Authority) -> Site:
    site = Site(dns=[f"{RESOLVER}:53"], https_port=443, ca=authority.files.as_dict())
    site.hosts[CANARY] = {"address": PRIVATE_ADDRESS, "generate": True}
    site.records = {name: [address] for name, address in FORBIDDEN.items()}
    for name in (HOST, OTHER, "a.example.org", "b.example.org"):
        site.records[name] = [ORIGIN]
    site.records |= {name: [address] for name, address in _more_records.items()}
    return site


@contextmanager
def _hostile_origin(folder: Path, internet: Namespace) -> Iterator[Path]:
    log = folder / "hostile.jsonl"
    log.touch()
    program = REPOSITORY / "integration" / "hostile" / "origin.py"
    child = Child(internet.inside([sys.executable, program, ORIGIN, log]), folder / "hostile.log")
    try:
        child.wait_for_output("ready")
        yield log
    finally:
        child.stop()


@contextmanager
def edge(folder: Path, **config: Any) -> Iterator[Target]:
    """An edge with its defaults; `config` replaces sections."""
    authority = Authority(folder)
    bed = Bed(folder, _sites(authority), ["example.org"], authority, **config)
    with bed, _hostile_origin(folder, bed.topology.internet) as log:
        yield Target(
            "edge",
            folder,
            bed.topology.clients,
            bed.topology.internet,
            [bed.pep],
            log,
            bed.origins,
            authority,
            has_tls=True,
        )


@contextmanager
def pair_of_boxes(
    folder: Path, *, profile: str = "leo", steered: Sequence[str] = ("listed.example.org",), **split: Any
) -> Iterator[Target]:
    """A pair with its defaults over a fast link. `split` changes keys of that section."""
    authority = Authority(folder)
    site = _sites(authority)
    site.records |= {GROUND_NAME: [FAR], REMOTE_NAME: [NEAR]}
    with ExitStack() as stack:
        line = stack.enter_context(Line(folder, profile, seed=1))
        origins = stack.enter_context(Origins(site.write(folder / "site.json"), folder, line.internet))
        log = stack.enter_context(_hostile_origin(folder, line.internet))
        ends = Ends(line.near, NEAR_HOME, line.gateway, FAR)
        setting = links.link(profile).setting
        both = stack.enter_context(pair(folder, ends, setting, trusted=authority.files.cert, steered=steered, **split))
        stack.enter_context(rules(line.near, intercept(NEAR_DEVICE, *REDIRECTS)))
        both.until_piped()
        envoys = [both.remote, both.ground]
        yield Target("pair", folder, line.clients, line.internet, envoys, log, origins, authority, both=both)


TARGETS: dict[str, Callable[..., Any]] = {"edge": edge, "pair": pair_of_boxes}
__all__ = [
    "CANARY",
    "HOST",
    "INTERNET",
    "ORIGIN",
    "OTHER",
    "TARGETS",
    "Target",
    "edge",
    "fresh",
    "pair_of_boxes",
    "records",
]
