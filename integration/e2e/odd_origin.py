"""An origin that answers with the bytes that the request's path holds, compressed and in URL-safe base64, on port 80.

    odd_origin.py ADDRESS

`GET /BASE64` is answered with those bytes and the end of the connection; `GET /-/asked` with the number of requests so
far by path, as JSON. `path_of` makes such paths.
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
ASKED = "/-/asked"
_LINGER_S = 1.0


def path_of(response: bytes) -> str:
    """The path that is answered with these bytes."""
    return "/" + base64.urlsafe_b64encode(zlib.compress(response)).decode()


def _serve(connection: socket.socket) -> None:
    with connection:
        head = b""
        while b"\r\n\r\n" not in head:
            part = connection.recv(65536)
            if not part:
                return
            head += part
        path = head.split(b" ", 2)[1].decode()
        if path == ASKED:
            body = json.dumps(_asked).encode()
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nconnection: close\r\ncache-control: no-store\r\n"
                b"content-length: %d\r\n\r\n%s" % (len(body), body)
            )
            return
        _asked[path] += 1
        connection.sendall(zlib.decompress(base64.urlsafe_b64decode(path[1:])))
        connection.shutdown(socket.SHUT_WR)
        # A reset would overtake what was sent.
        connection.settimeout(_LINGER_S)
        connection.recv(65536)


def _answer(connection: socket.socket) -> None:
    try:
        _serve(connection)
    except (OSError, ValueError, zlib.error):
        return


def main(address: str) -> None:
    """Serves for ever."""
    listener = socket.create_server((address, 80), backlog=256)
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1])
