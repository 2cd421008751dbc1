"""A name server over UDP whose responses a test decides. No TCP port is open."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from dnslib import QTYPE, RCODE, RR, A, DNSRecord

from harness.net.namespaces import Namespace
from harness.net.sockets import socket_in

Response = list[str] | str | None
"""IPv4 addresses, the name of a code such as SERVFAIL, or no response at all."""


class NameServer:
    """Responds as `respond` says, which gets the name in lower case and the type of a query. Addresses are for A
    queries alone."""

    def __init__(
        self,
        respond: Callable[[str, str], Response],
        *,
        address: str = "127.0.0.1",
        port: int = 0,
        ttl: int = 1,
        namespace: Namespace | None = None,
    ) -> None:
        self._respond, self._ttl = respond, ttl
        datagrams = socket.SOCK_DGRAM
        self._socket = socket_in(namespace, datagrams) if namespace else socket.socket(socket.AF_INET, datagrams)
        self._socket.bind((address, port))
        self._socket.settimeout(0.1)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def at(self) -> str:
        """Its socket as a configuration writes it."""
        host, port = self._socket.getsockname()
        return f"{host}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while not self._over.is_set():
            with suppress(TimeoutError):
                query, client = self._socket.recvfrom(4096)
                if reply := self._reply(DNSRecord.parse(query)):
                    self._socket.sendto(reply, client)

    def _reply(self, query: DNSRecord) -> bytes | None:
        reply, kind = query.reply(), QTYPE[query.q.qtype]
        response = self._respond(str(query.q.qname).lower().rstrip("."), kind)
        if response is None:
            return None
        if isinstance(response, str):
            reply.header.rcode = getattr(RCODE, response)
        elif kind == "A":
            reply.add_answer(*(RR(query.q.qname, QTYPE.A, rdata=A(one), ttl=self._ttl) for one in response))
        return bytes(reply.pack())
