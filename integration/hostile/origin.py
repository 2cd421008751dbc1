"""An origin that does exactly what a URL says, right or wrong, and logs each request that reaches it.

    origin.py ADDRESS LOG

    /say?...                    s: status, h: header line (repeats), b: body, in which {cookie}, {authorization},
                                {accept}, {x-api-key}, {host}, {x-forwarded-host} and {n}, a number of its
                                own, are filled in
    /big/BYTES?...              that many bytes, sent as fast as they are read; h: header line, chunked=1
    /made/CODING/BYTES/TYPE?... compressible text in a content encoding (gzip, br, zstd, none); cut=1 sends half of it
    /raw/BASE64URL              these bytes and nothing else, then the connection closes
    /set?state=X                from now on /state?... responds as the path in its parameter X says

The log has one JSON object in each line: connection, method, target, headers.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import itertools
import json
import sys
from email.utils import formatdate
from functools import cache
from typing import TextIO
from urllib.parse import parse_qs, unquote, urlsplit

import brotli
import zstandard

CONNECTIONS = itertools.count(1)
PIECE = b"x" * 65536
state = "first"


@cache
def made(coding: str, size: int) -> bytes:
    """Returns text of that many bytes in a content encoding. It compresses better than any page does."""
    line = b"<p>one row of a table that repeats</p>\n"
    plain = (line * (size // len(line) + 1))[:size]
    if coding == "gzip":
        return gzip.compress(plain, 9, mtime=0)
    if coding == "br":
        return brotli.compress(plain, quality=9, lgwin=22)
    if coding == "zstd":
        return zstandard.compress(plain, 9)
    return plain


class Exchange:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, log: TextIO) -> None:
        self.reader, self.writer, self.log = reader, writer, log
        self.number = next(CONNECTIONS)
        self.count = 0

    async def serve(self) -> None:
        """Serves until either side closes."""
        try:
            while await self.request():
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            self.writer.close()

    async def request(self) -> bool:
        """Reads one request and sends its response. Returns False where the connection ends with it."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head[:-4].split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        self.count += 1
        print(
            json.dumps({"connection": self.number, "method": method, "target": target, "headers": headers}),
            file=self.log,
            flush=True,
        )
        fields = dict(headers)
        await self.skip_body(fields)
        return await self.respond(method, target, fields)

    async def skip_body(self, fields: dict[str, str]) -> None:
        """Reads an announced body to its end, as the strictest server would."""
        if "chunked" in fields.get("transfer-encoding", ""):
            while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
                await self.reader.readexactly(size + 2)
            while await self.reader.readuntil(b"\r\n") != b"\r\n":
                pass
        elif length := fields.get("content-length"):
            await self.reader.readexactly(int(length))

    async def respond(self, method: str, target: str, fields: dict[str, str]) -> bool:
        """Sends the response that the URL describes."""
        global state
        split = urlsplit(target)
        query = parse_qs(split.query, keep_blank_values=True)
        kind, *rest = split.path.removeprefix("/").split("/")
        if kind == "set":
            state = query["state"][0]
            return await self.send(method, 200, [], state.encode())
        if kind == "state":
            split = urlsplit(query[state][0])
            query = parse_qs(split.query, keep_blank_values=True)
            kind, *rest = split.path.removeprefix("/").split("/")
        lines = query.get("h", [])
        if kind == "raw":
            self.writer.write(base64.urlsafe_b64decode(rest[0]))
            await self.writer.drain()
            return False
        if kind == "big":
            return await self.big(int(rest[0]), lines, "chunked" in query)
        if kind == "made":
            coding, size, content_type = rest[0], int(rest[1]), unquote(rest[2])
            body = made(coding, size)
            told = [] if coding == "none" else [f"content-encoding: {coding}"]
            if "cut" in query:
                await self.head(200, [*lines, *told, f"content-type: {content_type}", f"content-length: {len(body)}"])
                self.writer.write(body[: len(body) // 2])
                await self.writer.drain()
                return False
            return await self.send(method, 200, [*lines, *told, f"content-type: {content_type}"], body)
        if kind == "say":
            body = query.get("b", ["said"])[0]
            for name in ("cookie", "authorization", "accept", "x-api-key", "host", "x-forwarded-host"):
                body = body.replace("{" + name + "}", fields.get(name, "none"))
            body = body.replace("{n}", f"{self.number}-{self.count}")
            return await self.send(method, int(query.get("s", ["200"])[0]), lines, body.encode())
        return await self.send(method, 404, [], b"the origin has no such order")

    async def head(self, status: int, lines: list[str]) -> None:
        """Sends the status line and headers, with a date as every origin with a clock sends it (RFC 9110, section
        6.6.1)."""
        lines = [f"date: {formatdate(usegmt=True)}", *lines]
        self.writer.write("".join(f"{line}\r\n" for line in [f"HTTP/1.1 {status} Made", *lines, ""]).encode("latin-1"))

    async def send(self, method: str, status: int, lines: list[str], body: bytes) -> bool:
        """Sends a whole response."""
        await self.head(status, [*lines, f"content-length: {len(body)}"])
        if method != "HEAD":
            self.writer.write(body)
        await self.writer.drain()
        return True

    async def big(self, size: int, lines: list[str], chunked: bool) -> bool:
        """Sends as many bytes as the other side reads, up to `size`."""
        await self.head(200, [*lines, "transfer-encoding: chunked" if chunked else f"content-length: {size}"])
        left = size
        while left:
            part = PIECE[: min(left, len(PIECE))]
            self.writer.write(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
            await self.writer.drain()
            left -= len(part)
        if chunked:
            self.writer.write(b"0\r\n\r\n")
            await self.writer.drain()
        return True


async def main(address: str, log_path: str) -> None:
    """Serves on port 80 of the address until it is stopped."""
    with open(log_path, "a", encoding="utf-8") as log:  # noqa: PTH123 - one file, open to the end
        server = await asyncio.start_server(
            lambda reader, writer: Exchange(reader, writer, log).serve(), address, 80, limit=1 << 20
        )
        print("ready", flush=True)
        async with server:
            await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
