"""A real Envoy with the filter in it, and an origin that sends exactly the response that a test sets."""

import select
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "integration"))

from harness.boxes import filters
from harness.origins.http1 import DEADLINE_S, Message, Origin, read_response

CONFIG = {
    "targets": {"https": [], "http": ["198.51.100.12:8080"]},
    "own": ["198.51.100.12:8080", "pep.example.net"],
    "level": "safe",
    "exclude": ["bank.example"],
    "ports": [80, 443, 8080],
}


@dataclass
class Answer:
    """The origin's response to everything: pieces of raw bytes, each sent at once. A piece may wait at a gate."""

    pieces: list[bytes]
    gates: list[threading.Event] = field(default_factory=list)

    def __call__(self, _: Message) -> Iterator[bytes]:
        for index, piece in enumerate(self.pieces):
            if 0 < index <= len(self.gates):
                self.gates[index - 1].wait(DEADLINE_S)
            yield piece


def head(status: str, *headers: str) -> bytes:
    return "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *headers, "")).encode("latin-1")


def ok(body: bytes, *headers: str, kind: str = "text/html") -> bytes:
    return head("200 OK", f"content-type: {kind}", f"content-length: {len(body)}", *headers) + body


def chunked(pieces: list[bytes], *headers: str, kind: str = "text/html") -> list[bytes]:
    """Returns the head, and then each piece as its own chunk, to be sent one by one."""
    chunks = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces]
    return [head("200 OK", f"content-type: {kind}", "transfer-encoding: chunked", *headers), *chunks, b"0\r\n\r\n"]


class Envoy(filters.Envoy):
    """Envoy with the filter, one worker, in front of one origin."""

    def __init__(
        self, origin: Origin, config: dict | str = CONFIG, module: Path | None = None, engine: str = ""
    ) -> None:
        super().__init__(
            filters.bootstrap(
                "origin",
                filters.address(origin.port),
                [filters.http_filter("edge", "url-rewrite", config, module, engine)],
                manager={
                    "http_protocol_options": {"accept_http_10": True, "enable_trailers": True},
                    "upgrade_configs": [{"upgrade_type": "websocket"}],
                },
                options={"explicit_http_config": {"http_protocol_options": {"enable_trailers": True}}},
            )
        )

    def metric(self, name: str) -> int:
        return self.counters("url_rewrite").get(name, 0)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_S)

    def get(self, host: str, path: str = "/", *headers: str, method: str = "GET", version: str = "1.1") -> Message:
        with self.connect() as connection:
            lines = [f"{method} {path} HTTP/{version}", f"host: {host}", "connection: close", *headers, "", ""]
            connection.sendall("\r\n".join(lines).encode("latin-1"))
            return read_response(connection, method)


def is_quiet(connection: socket.socket, for_s: float) -> bool:
    """Returns whether nothing arrives for a while."""
    return not select.select([connection], [], [], for_s)[0]
