"""An origin on port 80 whose response is in the request's path: raw bytes, compressed, in URL-safe base64.

    odd_origin.py ADDRESS

The response to `GET /BASE64` is those bytes, and then the connection ends. Once an upgrade is accepted, the origin
echoes. The response to `GET /-/asked` is the number of requests so far by path, as JSON, and that to `GET /-/methods`
the latest method by path. `path_of` makes such paths.
"""

from __future__ import annotations

import base64
import json
import socket
import sys
import threading
import zlib
from collections import Counter

_asked: Counter[str] = Counter()
_methods: dict[str, str] = {}
ASKED = "/-/asked"
METHODS = "/-/methods"
_LINGER_S = 1.0


def path_of(response: bytes) -> str:
    """Returns the path whose response is these bytes."""
    return "/" + base64.urlsafe_b64encode(zlib.compress(response)).decode()


def _serve(connection: socket.socket) -> None:
    with connection:
        head = b""
        while b"\r\n\r\n" not in head:
            part = connection.recv(65536)
            if not part:
                return
            head += part
        method, path = (word.decode() for word in head.split(b" ", 2)[:2])
        if path in (ASKED, METHODS):
            body = json.dumps(_asked if path == ASKED else _methods).encode()
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nconnection: close\r\ncache-control: no-store\r\n"
                b"content-length: %d\r\n\r\n%s" % (len(body), body)
            )
            return
        _asked[path] += 1
        _methods[path] = method
        response = zlib.decompress(base64.urlsafe_b64decode(path[1:]))
        connection.sendall(response)
        if response.startswith(b"HTTP/1.1 101") and b"\r\nupgrade:" in head.lower():
            while some := connection.recv(65536):
                connection.sendall(some)
            return
        connection.shutdown(socket.SHUT_WR)
        # A reset would overtake the bytes that were sent.
        connection.settimeout(_LINGER_S)
        connection.recv(65536)


def _answer(connection: socket.socket) -> None:
    try:
        _serve(connection)
    except (OSError, ValueError, zlib.error):
        return


def command(address: str) -> list[str]:
    """Returns the command that runs this origin. With -P, no module beside this file replaces one of Python's."""
    return [sys.executable, "-P", __file__, address]


def main(address: str) -> None:
    """Serves until it is stopped."""
    listener = socket.create_server((address, 80), backlog=256)
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1])
