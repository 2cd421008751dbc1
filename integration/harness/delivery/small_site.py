"""A site of two hosts, and the box before it: what an installed box has to serve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.clients.commands import Curl, dig
from harness.net.namespaces import Namespace
from harness.origins.program import Site

WWW, IMG = "www.example.org", "img.example.org"


def site(folder: Path) -> Path:
    """Two hosts on loopback and a resolver for them."""
    host = {"special": True, "generate": True}
    hosts = {WWW: {**host, "address": "127.78.0.1"}, IMG: {**host, "address": "127.78.0.2"}}
    return Site(dns=["127.0.0.1:1054"], http_port=8081, hosts=hosts).write(folder / "site.json")


def edge(cache: str) -> dict[str, Any]:
    """Returns a configuration for that site, on the ports that operators use."""
    return {
        "role": "edge",
        "link": {"rtt": "600ms", "down": "20mbit", "up": "5mbit"},
        "proxy": {"addresses": ["127.0.0.1"]},
        "listen": {
            "http": "127.0.0.1:80", "tls": "off", "dns": "127.0.0.1:53",
            "metrics": "127.0.0.1:9153", "intercept": "none",
        },
        "upstream": {
            "resolvers": ["127.0.0.1:1054"], "allow_private": ["127.78.0.0/24"],
            "map": {WWW: "127.78.0.1:8081", IMG: "127.78.0.2:8081"},
        },
        "rewrite": {"level": "safe", "target": "http"},
        "dns": {"domains": ["steered.txt"]},
        "cache": {"dir": cache, "size": "64mib"},
    }  # fmt: skip


def serves(namespace: Namespace, folder: Path) -> None:
    """Asserts that a page is rewritten on port 80 and that a listed name is steered on port 53."""
    page = Curl(folder, namespace).get(f"http://127.0.0.1/_/answer?host={IMG}", "-H", f"Host: {WWW}")
    assert page.status == 200, page
    assert f"http://127.0.0.1/{IMG}/".encode() in page.body
    assert dig(WWW, "A", "127.0.0.1", namespace=namespace).answer[0][3] == "127.0.0.1"
