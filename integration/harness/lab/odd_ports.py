"""Servers on the ports that a page uses beside 80 and 443: WebSocket and http with and without TLS, and STUN.

The origins program serves http alone, on one port of each scheme.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from harness.net.authority import KeyFiles
from harness.net.namespaces import Namespace
from harness.net.sockets import socket_in

PLAIN_PORTS = (80, 8080)
TLS_PORTS = (443, 8443)
STUN_PORT = 3478
REFLEXIVE = ("203.0.113.250", 50000)
"""The address at which the STUN server sees everybody. A browser hides one that is the client's own."""
_COOKIE = 0x2112A442
_BINDING, _SUCCESS, _XOR_MAPPED_ADDRESS, _IPV4 = 0x0001, 0x0101, 0x0020, 0x01


def _echo(connection: ServerConnection) -> None:
    for message in connection:
        connection.send(message)


def _greet(connection: ServerConnection, request: Request) -> Response | None:
    """Responds to a request that is no handshake of a WebSocket, as any page may read it."""
    if "Upgrade" in request.headers:
        return None
    response = connection.respond(200, f"port {connection.local_address[1]}")
    response.headers["Access-Control-Allow-Origin"] = "*"
    return response


@contextmanager
def web_ports(internet: Namespace, address: str, certificate: KeyFiles) -> Iterator[None]:
    """Serves WebSocket and http on all ports of an address."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate.cert, certificate.key)
    with ExitStack() as stack:
        for port in (*PLAIN_PORTS, *TLS_PORTS):
            sock = socket_in(internet)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((address, port))
            sock.listen()
            server = serve(_echo, sock=sock, ssl=tls if port in TLS_PORTS else None, process_request=_greet)
            stack.callback(server.shutdown)
            threading.Thread(target=server.serve_forever, daemon=True).start()
        yield


@contextmanager
def stun(internet: Namespace, address: str) -> Iterator[None]:
    """Serves STUN (RFC 8489), whose clients all have the address `REFLEXIVE`."""
    with socket_in(internet, socket.SOCK_DGRAM) as sock:
        sock.bind((address, STUN_PORT))
        threading.Thread(target=_reflect, args=(sock,), daemon=True).start()
        yield


def _reflect(sock: socket.socket) -> None:
    ip, port = REFLEXIVE
    number = int.from_bytes(socket.inet_aton(ip), "big")
    mapped = struct.pack("!HHBBHI", _XOR_MAPPED_ADDRESS, 8, 0, _IPV4, port ^ (_COOKIE >> 16), number ^ _COOKIE)
    with suppress(OSError):
        while True:
            query, client = sock.recvfrom(2048)
            if len(query) >= 20 and struct.unpack("!H", query[:2])[0] == _BINDING:
                sock.sendto(struct.pack("!HH", _SUCCESS, len(mapped)) + query[4:20] + mapped, client)
