"""A box on loopback that an operator works at: a configuration with free ports, and a site behind it. Needs no root."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.clients.commands import Curl
from harness.host.artifacts import built, need_commands
from harness.host.ports import free_ports
from harness.origins.program import Origins, Site

from .pep import write_config

WWW, IMG = "www.example.org", "img.example.org"
ANSWER = f"/_/answer?host={IMG}"


@dataclass
class Desk:
    """A configuration on loopback with free ports, a site for it, and nothing running yet but the site."""

    folder: Path
    origins: Origins
    config: dict[str, Any]
    http: int
    dns: int
    metrics: int

    def write(self, **changes: Any) -> Path:
        """Writes the configuration. A `longhaul run` that is open sees the change."""
        return write_config(self.etc, {**self.config, **changes}, steered=["example.org"])

    @property
    def etc(self) -> Path:
        """The configuration's own folder. A watched folder where other files come and go would never be quiet."""
        path = self.folder / "etc"
        path.mkdir(exist_ok=True)
        return path

    def get(self, target: str = ANSWER, host: str = WWW, *options: str) -> bytes:
        """Fetches a page of the site through the proxy."""
        curl = Curl(self.folder)
        answer = curl.get(f"http://127.0.0.1:{self.http}{target}", "-H", f"Host: {host}", *options)
        assert answer.status == 200, answer
        return answer.body

    def open_gate(self, gate: str) -> None:
        """Lets the responses of the site that wait at a gate send one more piece (origins: special.go)."""
        at = self.config["upstream"]["map"][WWW]
        answer = Curl(self.folder).get(f"http://{at}/_/open?gate={gate}", "-H", f"Host: {WWW}")
        assert answer.status == 204, answer

    @property
    def moved(self) -> bytes:
        """The first characters of every moved URL of the image host."""
        return f"http://127.0.0.1:{self.http}/{IMG}/".encode()


@contextmanager
def desk_in(folder: Path) -> Iterator[Desk]:
    """A desk in a folder. Its site runs as long as the context lasts."""
    need_commands("curl", "dig")
    for name in ("longhaul", "coredns", "url_rewrite.wasm", "envoy", "origins"):
        built(name)
    http, dns, metrics, origin_http, origin_dns = free_ports(5)
    host = {"address": "127.78.0.1", "special": True, "generate": True}
    site = Site(
        dns=[f"127.0.0.1:{origin_dns}"],
        http_port=origin_http,
        hosts={WWW: host, IMG: {**host, "address": "127.78.0.2"}},
    )
    config = {
        "role": "edge",
        "link": {"rtt": "600ms", "down": "20mbit", "up": "5mbit"},
        "proxy": {"addresses": ["127.0.0.1"]},
        "listen": {
            "http": f"127.0.0.1:{http}", "tls": "off", "dns": f"127.0.0.1:{dns}",
            "metrics": f"127.0.0.1:{metrics}", "intercept": "none",
        },
        "upstream": {
            "resolvers": [f"127.0.0.1:{origin_dns}"],
            "allow_private": ["127.78.0.0/24"],
            "map": {WWW: f"127.78.0.1:{origin_http}", IMG: f"127.78.0.2:{origin_http}"},
        },
        "rewrite": {"level": "safe", "target": "http"},
        "dns": {"domains": ["steered.txt"]},
        "cache": {"dir": str(folder / "cache"), "size": "64mib"},
    }  # fmt: skip
    with Origins(site.write(folder / "site.json"), folder) as origins:
        yield Desk(folder, origins, config, http, dns, metrics)


def is_taken(port: int) -> bool:
    """Returns true if a program listens on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
