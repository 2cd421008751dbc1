"""A small web server on loopback for tests that need a few responses, and not an origin with its log."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Request:
    """A request with its whole body."""

    method: str
    target: str
    body: bytes
    fields: Mapping[str, str]
    """The header fields. A lookup ignores case."""


@dataclass(frozen=True)
class Response:
    """A response of known length. Without a media type it has no `Content-Type`."""

    body: bytes = b""
    media_type: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Further header fields."""


@contextmanager
def web_server(respond: Callable[[Request], Response], port: int = 0) -> Iterator[int]:
    """Serves GET and POST with status 200, on a free port unless one is given. Yields the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            response = respond(Request(self.command, self.path, self._body(), dict(self.headers)))
            self.send_response(200)
            self.send_header("Content-Length", str(len(response.body)))
            if response.media_type:
                self.send_header("Content-Type", response.media_type)
            for name, value in response.fields.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(response.body)

        do_POST = do_GET  # noqa: N815 - the name is that of the library

        def _body(self) -> bytes:
            if "chunked" not in self.headers.get("transfer-encoding", ""):
                return self.rfile.read(int(self.headers.get("content-length", 0)))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            return body

        def log_message(self, format: str, *args: object) -> None:
            """Is silent."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
