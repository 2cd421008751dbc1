"""HTTP/1.1 on loopback for tests that hold both ends: an origin that sends given bytes, and a client that reads what
comes. Messages are parsed by h11."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import h11

DEADLINE_S = 30.0
LONGEST_HEAD = 1 << 20
Fields = list[tuple[bytes, bytes]]


class Readable(Protocol):
    """A socket, or what reads like one."""

    def recv(self, size: int, /) -> bytes:
        """Returns the next bytes, or none at the end."""
        ...


@dataclass
class Message:
    """A request or a response. A body that ends too early is not `complete`."""

    line: bytes
    fields: Fields
    body: bytes = b""
    complete: bool = True

    @property
    def status(self) -> int:
        """The status of a response, or 0 if none came."""
        return int(self.line.split(b" ")[1]) if self.line else 0

    @property
    def method(self) -> str:
        """The method of a request."""
        return self.line.split(b" ")[0].decode()

    @property
    def target(self) -> str:
        """The target of a request."""
        return self.line.split(b" ")[1].decode()

    def all(self, name: str) -> list[str]:
        """Returns the values of the fields of a name."""
        return [value.decode("latin-1") for known, value in self.fields if known.lower() == name.encode()]

    def get(self, name: str) -> str | None:
        """Returns the first value of a name."""
        return next(iter(self.all(name)), None)


def message(line: bytes, fields: Iterable[tuple[bytes, bytes]] = (), body: bytes = b"") -> bytes:
    """Returns a message as bytes, with no more fields than these."""
    return b"".join([line, b"\r\n", *(name + b": " + value + b"\r\n" for name, value in fields), b"\r\n", body])


def events(connection: Readable, method: str = "GET") -> Iterator[h11.Response | h11.InformationalResponse | h11.Data]:
    """Yields the parts of the response to a request that was sent on a connection, as they arrive."""
    parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEAD)
    # The parser has to know the request. A proposed upgrade may be declined.
    parser.send(h11.Request(method=method, target="/", headers=[("host", "x"), ("upgrade", "x")]))
    parser.send(h11.EndOfMessage())
    while not isinstance(event := parser.next_event(), h11.EndOfMessage):
        if event is h11.NEED_DATA:
            parser.receive_data(connection.recv(65536))
        elif isinstance(event, (h11.Response, h11.InformationalResponse, h11.Data)):
            yield event
            if isinstance(event, h11.InformationalResponse) and event.status_code == 101:
                return


def read_response(connection: Readable, method: str = "GET") -> Message:
    """Reads one response, or as much of it as comes."""
    got = Message(b"", [], complete=False)
    with suppress(h11.RemoteProtocolError, ConnectionError):
        for event in events(connection, method):
            if isinstance(event, h11.Data):
                got.body += event.data
            else:
                got.line = b"HTTP/%s %d %s" % (event.http_version, event.status_code, event.reason)
                got.fields = list(event.headers)
        got.complete = True
    return got


def chunks(connection: Readable) -> Iterator[bytes]:
    """Yields the chunks of a response as they arrive, without waiting for the next."""
    chunk = b""
    for event in events(connection):
        if isinstance(event, h11.Data):
            chunk += event.data
            if event.chunk_end:
                yield chunk
                chunk = b""


class Client:
    """A connection to a port of loopback, from an address of loopback."""

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S, source_address=(source, 0))

    def ask(self, method: bytes, host: bytes, path: bytes, fields: Fields | None = None, body: bytes = b"") -> Message:
        """Sends a request and reads the response."""
        length = [(b"content-length", b"%d" % len(body))] if body else []
        line = b" ".join([method, path, b"HTTP/1.1"])
        self.socket.sendall(message(line, [(b"host", host), *(fields or []), *length], body))
        got = read_response(self.socket, method.decode())
        if not got.status:
            raise ConnectionError("closed without a response")
        return got

    def close(self) -> None:
        """Ends the connection."""
        self.socket.close()


class Origin:
    """An origin that sends the pieces that its function `answer` yields for a request, and records every request. After
    an upgrade it echoes. A response without pieces ends the connection, and so does one that says so."""

    def __init__(self, answer: Callable[[Message], Iterable[bytes]], port: int = 0) -> None:
        self.requests: list[Message] = []
        self.answer = answer
        origin = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with suppress(ConnectionError, h11.RemoteProtocolError):
                    origin._serve(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 128

        self._server = Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        rest, closes = b"", False
        while not closes:
            parser = h11.Connection(h11.SERVER, max_incomplete_event_size=LONGEST_HEAD)
            if rest:
                parser.receive_data(rest)
            request = Message(b"", [])
            while not isinstance(event := parser.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    parser.receive_data(connection.recv(65536))
                elif isinstance(event, h11.Request):
                    request.line = b"%s %s HTTP/1.1" % (event.method, event.target)
                    request.fields = list(event.headers)
                elif isinstance(event, h11.Data):
                    request.body += event.data
                else:
                    return
            self.requests.append(request)
            rest, _ = parser.trailing_data
            closes = True
            for index, piece in enumerate(self.answer(request)):
                closes = b"connection: close" in piece.lower() if index == 0 else closes
                connection.sendall(piece)
            if request.get("upgrade"):
                while data := connection.recv(65536):
                    connection.sendall(data)
                return

    def close(self) -> None:
        """Ends the origin."""
        self._server.shutdown()
        self._server.server_close()
