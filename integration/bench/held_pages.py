"""An origin that can stop in the middle of a page, and clients that see when each piece arrives.

Both are in this process, so that one clock tells when a piece left and when it came.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field


@dataclass
class Script:
    """What the origin sends: pieces, with a pause before each but the first; then it waits until it may end."""

    pieces: Sequence[bytes]
    pause_s: float = 0.0
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    sent_at: list[float] = field(default_factory=list)


class PausingOrigin:
    """Answers every request with the page of the moment, chunked."""

    def __init__(self, address: str) -> None:
        self.script = Script([])
        self._address = address
        self.port = 0

    async def __aenter__(self) -> PausingOrigin:
        self._server = await asyncio.start_server(self._serve, self._address, 0, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await self._answer(writer, self.script)

    async def _answer(self, writer: asyncio.StreamWriter, script: Script) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n")
        for number, piece in enumerate(script.pieces):
            if number and script.pause_s:
                await asyncio.sleep(script.pause_s)
            script.sent_at.append(time.monotonic())
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        await script.may_end.wait()
        writer.write(b"0\r\n\r\n")
        await writer.drain()


@dataclass
class Arrival:
    """Bytes that came together; the chunked coding's own bytes are among them."""

    at: float
    bytes: int


async def fetch(port: int, host: str, until: bytes, met: asyncio.Event | None = None) -> list[Arrival]:
    """Asks for a page and reads to its end; `met` is set when `until`, which ends the last piece, has come."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 18)
    writer.write(f"GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"not a page: {head.decode('latin-1')}")
    arrivals: list[Arrival] = []
    tail = b""
    while part := await reader.read(1 << 16):
        arrivals.append(Arrival(time.monotonic(), len(part)))
        tail = (tail + part)[-(len(until) + (1 << 16)) :]
        if met and until in tail:
            met.set()
    writer.close()
    return arrivals
