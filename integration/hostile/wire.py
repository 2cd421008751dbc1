"""Connections of a hostile client: sockets inside a namespace, requests byte by byte, HTTP/2 without checks."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import h2.exceptions


def over_tls(plain: socket.socket, name: str, authority: Path, *alpn: str) -> ssl.SSLSocket:
    """Starts TLS on a connection, for the proxy's own name."""
    context = ssl.create_default_context(cafile=str(authority))
    context.set_alpn_protocols(list(alpn) or ["http/1.1"])
    return context.wrap_socket(plain, server_hostname=name)


@dataclass
class Reply:
    """A response, or the part of it that arrived."""

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    is_whole: bool = True

    def header(self, name: str) -> str | None:
        """Returns the values of a header, joined, or None where it is absent."""
        values = [value for key, value in self.headers if key == name]
        return ", ".join(values) if values else None


NOTHING = Reply(0, is_whole=False)


def send_bytes(connection: socket.socket, request: bytes) -> Reply:
    """Sends these bytes and reads one HTTP/1 response."""
    try:
        connection.sendall(request)
    except OSError:
        return NOTHING
    return read_reply(connection, is_head=request.startswith(b"HEAD "))


def read_reply(connection: socket.socket, *, is_head: bool = False) -> Reply:
    """Reads one HTTP/1 response, and skips interim responses."""
    stream = connection.makefile("rb")
    try:
        while True:
            reply = _read_head(stream)
            if reply is None:
                return NOTHING
            if reply.status >= 200 or reply.status == 101:
                break
        if is_head or reply.status in (101, 204, 304):
            return reply
        _read_body(stream, reply)
    except (OSError, ValueError):
        return Reply(0, is_whole=False)
    return reply


def _read_head(stream) -> Reply | None:
    first = stream.readline(65537)
    parts = first.decode("latin-1").split(" ", 2)
    if len(parts) < 2 or not parts[1][:3].isdigit():
        return None
    reply = Reply(int(parts[1][:3]))
    while (line := stream.readline(65537)) not in (b"\r\n", b"\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        reply.headers.append((name.strip().lower(), value.strip()))
    return reply


def _read_body(stream, reply: Reply) -> None:
    if "chunked" in (reply.header("transfer-encoding") or ""):
        parts = []
        try:
            while size := int(stream.readline(64).split(b";")[0] or b"x", 16):
                parts.append(stream.read(size))
                stream.readline(8)
            while stream.readline(8192) not in (b"\r\n", b"\n", b""):
                pass
        except (OSError, ValueError):
            reply.is_whole = False
        reply.body = b"".join(parts)
    elif (length := reply.header("content-length")) is not None:
        wanted = int(length)
        try:
            reply.body = stream.read(wanted)
        except OSError:
            reply.is_whole = False
        reply.is_whole = reply.is_whole and len(reply.body) == wanted
    else:
        reply.body = stream.read()


def request_bytes(
    method: str, target: str, host: str, headers: Sequence[tuple[str, str]] = (), body: bytes = b""
) -> bytes:
    """Returns a well-formed HTTP/1.1 request."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in headers)]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Http2:
    """An HTTP/2 connection on which pseudo-headers may have any value."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        config = h2.config.H2Configuration(
            validate_outbound_headers=False, normalize_outbound_headers=False, header_encoding="latin-1"
        )
        self._h2 = h2.connection.H2Connection(config)
        self._h2.initiate_connection()
        self._flush()

    def get(self, scheme: str, authority: str, path: str, headers: Sequence[tuple[str, str]] = ()) -> Reply:
        """Sends one request and returns its response."""
        reply = Reply(0, is_whole=False)
        try:
            stream = self._h2.get_next_available_stream_id()
            pseudo = [(":method", "GET"), (":scheme", scheme), (":authority", authority), (":path", path)]
            self._h2.send_headers(stream, [*pseudo, *headers], end_stream=True)
            self._flush()
        except (OSError, h2.exceptions.ProtocolError):
            return reply
        while True:
            try:
                data = self._socket.recv(65536)
            except OSError:
                return reply
            if not data:
                return reply
            try:
                events = self._h2.receive_data(data)
            except h2.exceptions.ProtocolError:
                return reply
            for event in events:
                if isinstance(event, h2.events.ConnectionTerminated):
                    return reply
                if getattr(event, "stream_id", None) != stream:
                    continue
                if isinstance(event, h2.events.ResponseReceived):
                    reply.headers = [(str(name), str(value)) for name, value in event.headers or []]
                    reply.status = int(reply.header(":status") or 0)
                elif isinstance(event, h2.events.DataReceived):
                    reply.body += event.data or b""
                    self._h2.acknowledge_received_data(event.flow_controlled_length or 0, stream)
                elif isinstance(event, h2.events.StreamEnded):
                    reply.is_whole = True
                    self._flush()
                    return reply
                elif isinstance(event, h2.events.StreamReset):
                    return reply
            self._flush()

    def _flush(self) -> None:
        if data := self._h2.data_to_send():
            self._socket.sendall(data)
