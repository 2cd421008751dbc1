"""An origin that can pause in the middle of a page, and clients that record when each piece arrives.

Both are in this process, so one clock times the departure and the arrival of a piece.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field


@dataclass
class Script:
    """The pieces that the origin sends, with a pause before each but the first. Then it waits until it may end."""

    pieces: Sequence[bytes]
    pause_s: float = 0.0
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    sent_at: list[float] = field(default_factory=list)


class PausingOrigin:
    """Sends the page of `script` in response to every request, chunked."""

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
    """Bytes that arrived together. They include the framing of the chunks."""

    at: float
    bytes: int


async def fetch(port: int, host: str, until: bytes, met: asyncio.Event | None = None) -> list[Arrival]:
    """Requests a page and reads it to its end. `met` is set when `until` has arrived, which ends the last piece."""
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
