"""A WebSocket server that returns each message, and says the protocol and the extensions of its connection.

socket_server.py ADDRESS
"""

from __future__ import annotations

import asyncio
import sys

import websockets
from websockets.asyncio.server import ServerConnection, serve


async def respond(connection: ServerConnection) -> None:
    """Returns messages until `close CODE`, after which this side ends the connection."""
    async for message in connection:
        if message == "what":
            names = [extension.name for extension in connection.protocol.extensions]
            await connection.send(f"{connection.subprotocol} {names}")
        elif isinstance(message, str) and message.startswith("close "):
            await connection.close(int(message.split()[1]), "as asked")
        else:
            await connection.send(message)


async def main(address: str) -> None:
    """Serves until it is stopped."""
    subprotocols = [websockets.Subprotocol("sample")]
    async with serve(respond, address, 80, max_size=2**24, subprotocols=subprotocols) as server:
        print("ready", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
