"""Origins that violate HTTP, one for each address. test_faults.py starts them, on port 80 of each address given.

    broken_origin.py ADDRESS=BEHAVIOUR...

A behaviour is a name of BEHAVIOURS. Each connection reads one request head and then misbehaves.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable


def silent(connection: socket.socket) -> None:
    """Accepts the request and sends nothing until the other side closes."""
    connection.recv(1)


def _head(length: int) -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\n\r\n".encode()


def longer(connection: socket.socket) -> None:
    """Promises 10 bytes and sends 40."""
    connection.sendall(_head(10) + b"0123456789" + b"HTTP/1.1 200 OK: an answer to nobody")


def shorter(connection: socket.socket) -> None:
    """Promises 4000 bytes and closes after 40."""
    connection.sendall(_head(4000) + b"<p>forty bytes of a page, and no more.</p>"[:40])


def stuck(connection: socket.socket) -> None:
    """Sends half of a page, and then nothing until the other side closes."""
    connection.sendall(_head(4000) + b"<p>half of a page" * 100)
    connection.recv(1)


def no_http(connection: socket.socket) -> None:
    """Speaks another protocol."""
    connection.sendall(b"220 mail.example.org ESMTP\r\n")


BEHAVIOURS: dict[str, Callable[[socket.socket], None]] = {
    "silent": silent, "longer": longer, "shorter": shorter, "stuck": stuck, "no_http": no_http,
}  # fmt: skip


def serve(address: str, behave: Callable[[socket.socket], None]) -> None:
    """Listens and gives each connection a thread."""
    listener = socket.create_server((address, 80))

    def loop() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=answer, args=(connection, behave), daemon=True).start()

    threading.Thread(target=loop, daemon=True).start()


def answer(connection: socket.socket, behave: Callable[[socket.socket], None]) -> None:
    """One connection, one request, one misbehaviour."""
    with connection:
        head = b""
        while b"\r\n\r\n" not in head:
            part = connection.recv(4096)
            if not part:
                return
            head += part
        try:
            behave(connection)
        except OSError:
            return


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        where, _, what = argument.partition("=")
        serve(where, BEHAVIOURS[what])
    print("ready", flush=True)
    threading.Event().wait()
