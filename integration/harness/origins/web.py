"""A small web server on loopback for tests that need a few responses, and not an origin with its log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from .http1 import Message, Origin, message


@dataclass(frozen=True)
class Response:
    """A response of known length. Without a media type it has no `Content-Type`."""

    body: bytes = b""
    media_type: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Further header fields."""

    def message(self, request: Message) -> bytes:
        """Returns it as it is sent, with status 200."""
        kind = {"content-type": self.media_type} if self.media_type else {}
        told = {"content-length": str(len(self.body)), **kind, **self.fields}
        fields = [(name.encode(), value.encode()) for name, value in told.items()]
        return message(b"HTTP/1.1 200 OK", fields, b"" if request.method == "HEAD" else self.body)


@contextmanager
def web_server(respond: Callable[[Message], Response], port: int = 0) -> Iterator[int]:
    """Serves GET and POST, on a free port unless one is given. Yields the port."""
    with closing(Origin(lambda request: [respond(request).message(request)], port)) as origin:
        yield origin.port
