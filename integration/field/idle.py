"""Connections on which nothing happens for minutes."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

from harness.boxes import Boxes
from harness.sockets import connected

from .bed import HOST, over_tls, standing
from .figure import Figure, together, wrong
from .origin import BANNER, GREETING, WEB

IDLE_S, QUICK_S = 400.0, 5.0
ANSWER_S = 20.0


def idle_cut(quick: bool) -> Figure:
    """Connections that do not work any more afterwards. An edge and a pair wait at the same time."""
    idle_s = QUICK_S if quick else IDLE_S
    found: list[Figure] = []
    threads = [threading.Thread(target=lambda kind=kind: found.append(_of(kind, idle_s))) for kind in ("edge", "pair")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return together(found)


def _of(kind: str, idle_s: float) -> Figure:
    with standing(kind) as box:
        kinds: dict[str, Callable[[], Callable[[], bool]]] = {
            "TLS": lambda: _tls(box, HOST),
            "TLS without a name": lambda: _tls(box, None),
            "TCP on port 80": lambda: _raw(box, 80),
            "TCP on port 443": lambda: _raw(box, 443),
            "WebSocket": lambda: _socket(box),
            "server-sent events": lambda: _events(box, idle_s),
        }
        opened = {name: begin() for name, begin in kinds.items()}
        time.sleep(idle_s)
        return wrong((f"{kind}, {name}", _check(works)) for name, works in opened.items())


def _check(works: Callable[[], bool]) -> str:
    try:
        return "" if works() else "it was closed"
    except OSError as error:
        return repr(error)


def _echoes(connection: socket.socket) -> Callable[[], bool]:
    def works() -> bool:
        connection.settimeout(ANSWER_S)
        connection.sendall(b"still there")
        return connection.recv(100) == b"still there"

    return works


def _tls(box: Boxes, name: str | None) -> Callable[[], bool]:
    connection = over_tls(connected(box.clients, WEB, 443), name)
    connection.sendall(f"GET /socket HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
    _until(connection, b"\r\n\r\n")
    return _echoes(connection)


def _raw(box: Boxes, port: int) -> Callable[[], bool]:
    # The wait for the server's first bytes is another figure, so this client speaks first.
    connection = connected(box.clients, BANNER, port)
    first = b"\0\1\2\3 a protocol of its own\r\n" * 20
    connection.sendall(first)
    _until(connection, GREETING + first)
    return _echoes(connection)


def _socket(box: Boxes) -> Callable[[], bool]:
    connection = connected(box.clients, WEB, 80)
    connection.sendall(
        f"GET /socket HTTP/1.1\r\nHost: {HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    _until(connection, b"\r\n\r\n")
    return _echoes(connection)


def _events(box: Boxes, idle_s: float) -> Callable[[], bool]:
    connection = connected(box.clients, WEB, 80)
    connection.sendall(f"GET /events/{idle_s} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
    _until(connection, b"first")

    def works() -> bool:
        connection.settimeout(ANSWER_S)
        _until(connection, b"second")
        return True

    return works


def _until(connection: socket.socket, end: bytes) -> None:
    """Reads until these bytes have come. Raises at an earlier end."""
    got = b""
    while end not in got:
        piece = connection.recv(65536)
        if not piece:
            raise ConnectionError("it ended")
        got += piece
