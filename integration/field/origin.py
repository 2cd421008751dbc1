"""The origin of all figures: a web server that does what a URL says, and servers of other protocols.

    python -m field.origin CERTIFICATE KEY

Each protocol has an address of its own, and ports 80 and 443 there:

    WEB      HTTP, over TLS on port 443
    HALF     reads until the client's end, then sends `HALF_BYTES`; no TLS
    HALF_TLS the same over TLS on port 443
    BANNER   speaks first, then returns each piece; no TLS

Paths of WEB:

    /bytes/N/END     N bytes; then the end of the connection: clean or reset
    /endless         bytes without end
    /raw/BASE64      these bytes and nothing else
    /file?SPEC       a file with fields, ranges and an encoding, see `files.py`
    /socket          101, then returns each piece
    /events/S        an event at once and another one after S seconds
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import socket
import ssl
import struct
import sys
import termios
import threading
import time
import zlib
from collections.abc import Callable
from urllib.parse import urlsplit

from .files import respond_with_file

WEB, HALF, HALF_TLS, BANNER = "203.0.113.20", "203.0.113.21", "203.0.113.22", "203.0.113.23"
HALF_BYTES = 100_000
GREETING = b"220 field.example.org ready\r\n"
LINGER_S = 5.0
PIECE = b"x" * 16384
FLUSHED_BYTES, FLUSHED_S = 30, 0.004
"""The pieces of a body, and the pause before each."""


def main(certificate: str, key: str) -> None:
    """Serves until it is stopped."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    for address, port, secure, serve in (
        (WEB, 80, False, web), (WEB, 443, True, web), (HALF, 80, False, half), (HALF, 443, False, half),
        (HALF_TLS, 443, True, half), (BANNER, 80, False, banner), (BANNER, 443, False, banner),
    ):  # fmt: skip
        listener = socket.create_server((address, port), backlog=256)
        arguments = (listener, context if secure else None, serve)
        threading.Thread(target=accept, args=arguments, daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


def accept(listener: socket.socket, context: ssl.SSLContext | None, serve: Callable[[socket.socket], None]) -> None:
    """Serves each connection in a thread."""

    def one(connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            serve(context.wrap_socket(connection, server_side=True) if context else connection)
        connection.close()

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=one, args=(connection,), daemon=True).start()


def end_clean(connection: socket.socket) -> None:
    """Ends the connection as a server does that has sent everything."""
    with contextlib.suppress(OSError, ValueError):
        if isinstance(connection, ssl.SSLSocket):
            connection.settimeout(0.0)
            with contextlib.suppress(ssl.SSLError):
                connection.unwrap()
        socket.socket.shutdown(connection, socket.SHUT_WR)
        # A reset would overtake the bytes that were sent.
        connection.settimeout(LINGER_S)
        while socket.socket.recv(connection, 65536):
            pass
    socket.socket.close(connection)


def end_reset(connection: socket.socket) -> None:
    """Resets the connection once the peer's kernel has every byte."""
    while struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, b"\0" * 4))[0]:
        time.sleep(0.01)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    socket.socket.close(connection)


def half(connection: socket.socket) -> None:
    """Reads until the client's end."""
    with contextlib.suppress(ssl.SSLError):
        while connection.recv(65536):
            pass
    connection.sendall(b"h" * HALF_BYTES)
    end_clean(connection)


def banner(connection: socket.socket) -> None:
    """Speaks first."""
    connection.sendall(GREETING)
    echo(connection)


def echo(connection: socket.socket) -> None:
    """Returns each piece."""
    while piece := connection.recv(65536):
        connection.sendall(piece)


def web(connection: socket.socket) -> None:
    """Serves requests until the client closes."""
    stream = connection.makefile("rb")
    while line := stream.readline(65537):
        if not line.strip():
            continue
        target = line.decode("latin-1").split(" ")[1]
        fields: dict[str, str] = {}
        while (field := stream.readline(65537)).strip():
            name, _, value = field.decode("latin-1").partition(":")
            fields[name.strip().lower()] = value.strip()
        if not respond(connection, target, fields):
            return


def respond(connection: socket.socket, target: str, fields: dict[str, str]) -> bool:
    """Sends one response. Returns whether the connection goes on."""
    path = urlsplit(target).path
    words = path.split("/")[1:]
    if words[0] == "bytes":
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: {words[1]}\r\n"
        connection.sendall(f"{head}cache-control: no-store\r\nconnection: close\r\n\r\n".encode())
        left = int(words[1])
        while left:
            connection.sendall(PIECE[:left])
            left -= len(PIECE[:left])
        (end_reset if words[2] == "reset" else end_clean)(connection)
        return False
    if words[0] == "endless":
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncache-control: no-store\r\n"
        connection.sendall(head + b"connection: close\r\n\r\n")
        while True:
            connection.sendall(PIECE)
    if words[0] == "raw":
        connection.sendall(zlib.decompress(base64.urlsafe_b64decode(words[1])))
        end_clean(connection)
        return False
    if words[0] == "socket":
        connection.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            b"sec-websocket-accept: x\r\n\r\n"
        )
        echo(connection)
        return False
    if words[0] == "events":
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\n"
        connection.sendall(head + b"connection: close\r\n\r\ndata: first\n\n")
        time.sleep(float(words[1]))
        connection.sendall(b"data: second\n\n")
        end_clean(connection)
        return False
    response = respond_with_file(target, fields)
    begin = response.index(b"\r\n\r\n") + 4 if "pieces=1" in target else len(response)
    connection.sendall(response[:begin])
    for at in range(begin, len(response), FLUSHED_BYTES):
        time.sleep(FLUSHED_S)
        connection.sendall(response[at : at + FLUSHED_BYTES])
    return True


if __name__ == "__main__":
    main(*sys.argv[1:])
