#!/usr/bin/env python3
"""operator_crowd.py ADDRESS NAME NUMBER SECONDS: so many clients, evenly over a time, each with one request on a
connection of its own. Prints how many had which end, as JSON. It needs the standard library alone."""

from __future__ import annotations

import asyncio
import collections
import json
import sys

PATIENCE_S = 60.0


async def load(address: str, name: str, after_s: float) -> str:
    """One client: the end of its request in a word."""
    await asyncio.sleep(after_s)
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(address, 80), PATIENCE_S)
    except (OSError, TimeoutError) as error:
        return f"no connection: {type(error).__name__}"
    try:
        writer.write(f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
        said = await asyncio.wait_for(reader.read(-1), PATIENCE_S)
        if not said:
            return "closed without a response"
        status = said.split(b" ", 2)[1].decode()
        return "served" if status == "200" else f"status {status}"
    except ConnectionError as error:
        return f"reset: {type(error).__name__}"
    except TimeoutError:
        return "timed out"
    finally:
        writer.close()


async def crowd(address: str, name: str, number: int, seconds: float) -> dict[str, int]:
    """All clients together."""
    ends = await asyncio.gather(*(load(address, name, seconds * one / number) for one in range(number)))
    return dict(collections.Counter(ends))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(crowd(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))))
