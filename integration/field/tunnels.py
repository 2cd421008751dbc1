"""Connections that Longhaul passes unread: do they end as the origin ends them, after its last byte?"""

from __future__ import annotations

import itertools
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from harness.boxes import Boxes
from harness.lab import links
from harness.sockets import connected

from .bed import HALF_HOST, HOST, all_at_once, over_tls, standing
from .figure import Figure, together, wrong
from .origin import HALF, HALF_BYTES, HALF_TLS, WEB

LINKS = ("maritime", "geo", "rural-lte", "cdma-average")
ENDS = ("clean", "reset")
ALONE, BESIDE = 2, 3
"""Downloads of each end on each link: with an idle link, and beside others."""
OTHERS = 4
MOST_BYTES, MOST_S = 3_000_000, 12.0
"""A download takes about so long on an idle link, and has at most so many bytes."""
PATIENCE_S = 240.0
KINDS = ("edge", "pair")
LATER_S = 1.5
"""By then a connection to the origin is open."""


def tunnel_downloads_cut(quick: bool) -> Figure:
    """https downloads through a pair that do not arrive whole."""
    profiles = ("rural-lte",) if quick else LINKS
    return together(all_at_once(lambda profile: _cut(profile, quick), profiles, len(profiles)))


def _cut(profile: str, quick: bool) -> Figure:
    size = int(min(MOST_BYTES, links.link(profile).payload_bytes_per_ms * 1000 * MOST_S))
    with standing("pair", profile) as box:
        cases = []
        for number, end in itertools.product(range(1 if quick else ALONE), ENDS):
            cases.append((f"{profile}, {end}, alone, {number}", _download(box, size, end)))
        with _others(box):
            todo = [(end, number) for end in ENDS for number in range(1 if quick else BESIDE)]
            found = all_at_once(lambda one: _download(box, size // 2, one[0]), todo, len(todo))
            cases += [
                (f"{profile}, {end}, beside {OTHERS}, {number}", problem)
                for (end, number), problem in zip(todo, found, strict=True)
            ]
    return wrong(cases)


def _download(box: Boxes, size: int, end: str) -> str:
    """Downloads over https. Returns how it was cut."""
    got, problem = 0, ""
    try:
        with connected(box.clients, WEB, 443, timeout_s=PATIENCE_S) as plain, over_tls(plain) as connection:
            connection.sendall(f"GET /bytes/{size}/{end} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            head = b""
            while b"\r\n\r\n" not in head and (piece := connection.recv(65536)):
                head += piece
            got = len(head.partition(b"\r\n\r\n")[2])
            while got < size and (piece := connection.recv(65536)):
                got += len(piece)
    except OSError as error:
        problem = repr(error)
    return "" if got == size else f"{got} of {size} bytes, {problem or 'a clean end'}"


@contextmanager
def _others(box: Boxes) -> Iterator[None]:
    """Reads downloads without end, over https."""
    opened: list[socket.socket] = []

    def read() -> None:
        with suppress(OSError):
            connection = over_tls(connected(box.clients, WEB, 443, timeout_s=PATIENCE_S))
            opened.append(connection)
            connection.sendall(f"GET /endless HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            while connection.recv(65536):
                pass

    threads = [threading.Thread(target=read, daemon=True) for _ in range(OTHERS)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(2.0)
        yield
    finally:
        for connection in opened:
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
        for thread in threads:
            thread.join(5.0)


def half_closes_lost(quick: bool) -> Figure:  # noqa: ARG001 - it takes seconds
    """Connections whose client ends its side first, and that do not get the whole response."""
    kinds: dict[str, Callable[[Boxes, float], int]] = {
        "TCP on port 80": lambda box, later: _half_raw(box, 80, later),
        "TCP on port 443": lambda box, later: _half_raw(box, 443, later),
        "TLS": lambda box, later: _half_tls(box, HALF_HOST, later),
        "TLS without a name": lambda box, later: _half_tls(box, None, later),
    }

    def one(box: Boxes, kind: str, later_s: float) -> tuple[str, str]:
        got: int | str
        try:
            got = kinds[kind](box, later_s)
        except OSError as error:
            got = repr(error)
        is_whole = isinstance(got, int) and got >= HALF_BYTES
        when = "at once" if not later_s else "later"
        return f"{box.name}, {kind}, {when}", "" if is_whole else f"{got} of {HALF_BYTES} bytes"

    figures = []
    for name in KINDS:
        with standing(name) as box:
            todo = list(itertools.product(kinds, (0.0, LATER_S)))
            figures.append(wrong(all_at_once(lambda each, box=box: one(box, *each), todo)))
    return together(figures)


def _half_raw(box: Boxes, port: int, later_s: float) -> int:
    with connected(box.clients, HALF, port, timeout_s=40.0) as connection:
        # Longer than any first bytes that Longhaul waits for.
        connection.sendall(b"\0\1\2\3 a protocol of its own\r\n" * 20)
        time.sleep(later_s)
        connection.shutdown(socket.SHUT_WR)
        return _count(connection)


def _half_tls(box: Boxes, name: str | None, later_s: float) -> int:
    """Ends TLS and TCP in the direction to the server, and counts the encrypted bytes that come."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    received, to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(received, to_send, server_hostname=name)
    with connected(box.clients, HALF_TLS, 443, timeout_s=40.0) as connection:
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.sendall(to_send.read())
                piece = connection.recv(65536)
                if not piece:
                    return 0
                received.write(piece)
        tls.write(b"a request")
        connection.sendall(to_send.read())
        time.sleep(later_s)
        with suppress(ssl.SSLWantReadError):
            tls.unwrap()
        connection.sendall(to_send.read())
        connection.shutdown(socket.SHUT_WR)
        return _count(connection)


def _count(connection: socket.socket) -> int:
    got = 0
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            got += len(piece)
    return got
