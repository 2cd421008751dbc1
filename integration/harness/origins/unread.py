"""Clients that begin downloads and then read no further, and an origin without an end for them.

In other namespaces than the caller's, each end is a process that needs the standard library alone:

    python unread.py serve ADDRESS PORT               GET /endless never ends, every other GET is short
    python unread.py hold ADDRESS PORT HOST COUNT     begins downloads, says `held`, holds them until its input ends
    python unread.py get ADDRESS PORT HOST COUNT      sends short requests, prints how many failed
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

READ = 20_000
"""The bytes of each download that its client reads."""
RECEIVE_BUFFER = 32_768
"""The bytes that the kernel of a client takes for it. The usual megabytes take long to fill."""
PIECE = bytes(range(256)) * 64
GET_S = 20
"""The time after which a short request has failed."""


class Endless(BaseHTTPRequestHandler):
    """GET /endless never ends, every other GET is short. `sent` counts the bytes of all endless ones."""

    protocol_version = "HTTP/1.1"
    sent = 0
    lock = threading.Lock()

    def do_GET(self) -> None:
        """Responds."""
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Cache-Control", "no-store")
        if not self.path.startswith("/endless"):
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"short")
            return
        self.send_header("Content-Length", str(1 << 40))
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(PIECE)
                with Endless.lock:
                    Endless.sent += len(PIECE)

    def log_message(self, format: str, *args: object) -> None:
        """Is silent."""


class Server(ThreadingHTTPServer):
    """Downloads that nobody reads must not keep the program."""

    daemon_threads = True
    block_on_close = False


@contextmanager
def endless(address: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """Serves `Endless`. Yields the port."""
    server = Server((address, port), Endless)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def held(address: str, port: int, host: str, count: int) -> Iterator[None]:
    """Begins downloads, reads a little of each, and holds them unread."""
    with ExitStack() as stack:
        for number in range(count):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
            client.settimeout(60)
            client.connect((address, port))
            client.sendall(f"GET /endless-{number} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            left = READ
            while left > 0:
                left -= len(client.recv(left)) or left
        yield


def failed(address: str, port: int, host: str, count: int) -> int:
    """Sends short requests one after the other. Returns how many got no whole response in time."""
    wrong = 0
    for number in range(count):
        client = http.client.HTTPConnection(address, port, timeout=GET_S)
        try:
            client.request("GET", f"/{number}", headers={"Host": host})
            answer = client.getresponse()
            wrong += (answer.status, answer.read()) != (200, b"short")
        except (OSError, http.client.HTTPException):
            wrong += 1
        finally:
            client.close()
    return wrong


def main(words: list[str]) -> None:
    """The command line."""
    match words:
        case ["serve", address, port]:
            with endless(address, int(port)):
                print("ready", flush=True)
                threading.Event().wait()
        case ["hold", address, port, host, count]:
            with held(address, int(port), host, int(count)):
                print("held", flush=True)
                sys.stdin.read()
        case ["get", address, port, host, count]:
            print(failed(address, int(port), host, int(count)), flush=True)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
