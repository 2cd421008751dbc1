"""Exchanges messages with the WebSocket server, and prints what it got.

socket_client.py URL
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import sys
import time

import websockets
from websockets.asyncio.client import connect

SLOW_CLOSE_S = 2.6
"""The server ends the connection at once. An edge passes the end on after 0.5 s and two round trips: 1.7 s here."""


async def main(url: str) -> None:
    """Prints a line for each exchange."""
    noise = random.Random(1).randbytes(200_000)
    async with connect(url, max_size=2**24, subprotocols=[websockets.Subprotocol("sample")], proxy=None) as socket:
        for message in ("what", "text", noise):
            await socket.send(message)
            got = await socket.recv()
            print(len(got), hashlib.sha256(got if isinstance(got, bytes) else got.encode()).hexdigest())
        await (await socket.ping(b"mark"))
        print("pong")
        began_s = time.monotonic()
        await socket.send("close 4321")
        await socket.wait_closed()
        slow = time.monotonic() - began_s > SLOW_CLOSE_S
        print("closed", socket.close_code, socket.close_reason, "late" if slow else "at once")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
