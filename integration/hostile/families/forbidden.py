"""Names and literals that lead to forbidden addresses: no connection is made, whatever their form."""

from __future__ import annotations

from collections.abc import Callable

from harness.net.topology import FORBIDDEN

from ..beds import Target, fresh
from ..cases import Case
from ..wire import request_bytes

LITERALS = (
    "10.66.0.1", "10.66.0.1:80", "10.66.1", "10.4325377", "012.0102.0.1", "0x0a.0x42.0.1", "0x0a420001", "172097537", "01220200001",  # noqa: E501
    "10.66.0.1.", "0012.66.0.1", "[::ffff:10.66.0.1]", "[::ffff:a42:1]", "[64:ff9b::10.66.0.1]", "[2002:a42:1::]", "[::10.66.0.1]",  # noqa: E501
    "127.0.0.1", "127.1", "0177.0.0.1", "2130706433", "0.0.0.0", "0", "[::1]", "[::]", "localhost", "localhost.",
    "127.0.0.1:9901", "127.0.0.1:9153", "169.254.169.254", "0xa9fea9fe", "[fe80::1]", "[fe80::1%25lo]", "[fc00::1]",
    "198.51.100.12", "198.51.100.12:22", "192.0.2.1", "192.0.2.1:9901", "[64:ff9b::198.51.100.12]",
    "10.66.0.1@hostile.example.org", "hostile.example.org@10.66.0.1", "hostile.example.org:22", "hostile.example.org:8080",  # noqa: E501
    "hostile.example.org:0", "hostile.example.org:65536", "①⑩.66.0.1", "10。66。0。1", "10.66.0.1%00.example.org",
)  # fmt: skip


def _connects(target: Target) -> int:
    """Connections that reached a forbidden address."""
    return len(target.origins.events("connect"))


def _refused(request: Callable[[str], bytes]) -> Callable[[str], Callable[[Target], str]]:
    def of(authority: str) -> Callable[[Target], str]:
        def attack(target: Target) -> str:
            before = _connects(target)
            reply = target.send(request(authority))
            if (after := _connects(target)) != before:
                return f"{after - before} connections reached a forbidden address (status {reply.status})"
            return "" if reply.status not in range(200, 300) else f"status {reply.status}: {reply.body[:80]!r}"

        return attack

    return of


def _by_host(authority: str) -> bytes:
    return request_bytes("GET", "/x", authority.encode().decode("latin-1"), [("Connection", "close")])


def _absolute(authority: str) -> bytes:
    return request_bytes(
        "GET", f"http://{authority}/x".encode().decode("latin-1"), "hostile.example.org", [("Connection", "close")]
    )


def _moved(authority: str) -> bytes:
    return request_bytes(
        "GET", f"/{authority}/x".encode().decode("latin-1"), "198.51.100.12", [("Connection", "close")]
    )


WAYS = {"Host": _by_host, "absolute form": _absolute, "moved URL": _moved}
IS_SHORT = (
    "10.66.0.1",
    "012.0102.0.1",
    "0x0a420001",
    "127.1",
    "[::ffff:10.66.0.1]",
    "169.254.169.254",
    "198.51.100.12",
    *FORBIDDEN,
)

CASES = [
    *(
        Case(f"{authority} by {name}", _refused(way)(authority), ("edge", "pair") if name == "Host" else ("edge",),
             is_long=authority not in IS_SHORT or name == "absolute form")
        for name, way in WAYS.items() for authority in (*LITERALS, *FORBIDDEN)
    ),
    Case("a name nobody has", lambda target: "" if target.get(f"/{fresh('gone')}", host="gone.invalid").status >= 400 else "served"),  # noqa: E501
]  # fmt: skip
