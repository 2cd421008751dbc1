"""Clients of DNS on each of its transports. As a program, it sends queries from a namespace.

    lookups.py TRANSPORT SERVER PORT SOURCE NAME AUTHORITY < queries

Each line of its input is a query in hexadecimal digits. For each it prints a line: the response, or `! ` and the
problem, as integration/origins/doq does.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dnslib import DNSRecord

from harness.host.artifacts import built
from harness.net.namespaces import Namespace

PORTS = {"udp": 53, "tcp": 53, "tls": 853, "quic": 853, "https": 8443}
"""The ports of `listen.dns` and of `dns.encrypted`."""
ENCRYPTED = ("tls", "quic", "https")
WAIT_S = 15.0


def ask(
    transport: str,
    queries: Sequence[DNSRecord],
    server: str,
    *,
    name: str,
    trusted: Path,
    source: str = "",
    namespace: Namespace | None = None,
    port: int = 0,
) -> list[DNSRecord | str]:
    """Sends queries over one connection. Returns the response to each, or the problem. The certificate of the server
    has to cover `name`."""
    port = port or PORTS[transport]
    command: list[str | Path]
    if transport == "quic":
        options = ["-timeout", f"{WAIT_S:g}s", *(["-from", source] if source else [])]
        command = [built("doq"), "-cacert", trusted, "-servername", name, *options, f"{server}:{port}"]
    else:
        command = [sys.executable, "-m", "harness.clients.lookups", transport, server, str(port), source, name, trusted]
    lines = [_wire(query, transport).hex() for query in queries]
    done = subprocess.run(
        namespace.inside(command) if namespace else command, input="".join(f"{line}\n" for line in lines),
        capture_output=True, text=True, timeout=120, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    found = done.stdout.splitlines()
    return [line[2:] if line.startswith("!") else DNSRecord.parse(bytes.fromhex(line)) for line in found]


def _wire(query: DNSRecord, transport: str) -> bytes:
    """Returns the bytes of a query. Over QUIC its number is 0 (RFC 9250 section 4.2.1)."""
    number = query.header.id
    query.header.id = 0 if transport == "quic" else number
    try:
        return bytes(query.pack())
    finally:
        query.header.id = number


class Connection:
    """A connection of one transport, made for the first query."""

    def __init__(self, transport: str, server: str, port: int, source: str, name: str, trusted: str) -> None:
        self._transport = transport
        self._server = (server, port)
        self._source = (source, 0)
        self._name = name
        self._trusted = trusted
        self._stream: socket.socket | None = None
        self._http: http.client.HTTPConnection | None = None

    def ask(self, query: bytes) -> bytes:
        """Sends a query and returns the response."""
        if self._transport == "udp":
            return self._over_udp(query)
        if self._transport == "https":
            return self._over_https(query)
        stream = self._connected()
        stream.sendall(len(query).to_bytes(2, "big") + query)
        return _exactly(stream, int.from_bytes(_exactly(stream, 2), "big"))

    def _over_udp(self, query: bytes) -> bytes:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.settimeout(WAIT_S)
            datagrams.bind(self._source)
            datagrams.connect(self._server)
            datagrams.send(query)
            return datagrams.recv(65535)

    def _over_https(self, query: bytes) -> bytes:
        """HTTP/1.1. `dig +https` speaks HTTP/2."""
        if self._http is None:
            self._http = http.client.HTTPConnection(self._name, self._server[1])
            self._http.sock = self._connected()
        self._http.request("POST", "/dns-query", query, {"Content-Type": "application/dns-message"})
        answer = self._http.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise OSError(f"status {answer.status}")
        return body

    def _connected(self) -> socket.socket:
        if self._stream is None:
            stream = socket.create_connection(self._server, WAIT_S, source_address=self._source)
            if self._transport in ENCRYPTED:
                context = ssl.create_default_context(cafile=self._trusted)
                stream = context.wrap_socket(stream, server_hostname=self._name)
            self._stream = stream
        return self._stream


def _exactly(stream: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = stream.recv(count - len(data))
        if not more:
            raise OSError(f"closed after {len(data)} of {count} bytes")
        data += more
    return data


def main() -> None:
    """Sends the queries of the input."""
    transport, server, port, source, name, trusted = sys.argv[1:]
    connection = Connection(transport, server, int(port), source, name, trusted)
    for line in sys.stdin:
        try:
            print(connection.ask(bytes.fromhex(line)).hex(), flush=True)
        except OSError as error:
            print("!", error, flush=True)


if __name__ == "__main__":
    main()
