"""The delay that a contender adds to a page that arrives slowly: pieces 300 ms apart, each timed from the origin on."""

from __future__ import annotations

import asyncio
import statistics
from dataclasses import dataclass

from bench.held_pages import PausingOrigin, Script, fetch
from bench.real_pages import RealPage

PAUSE_S = 0.3
PIECES = 4


@dataclass(frozen=True)
class Delays:
    """Medians over the rounds, in milliseconds between the origin's sending of a piece and the arrival of its first
    byte."""

    first_ms: float
    later_ms: float
    most_ms: float


async def delays_of_one(origin: PausingOrigin, port: int, page: RealPage) -> list[float]:
    """Returns the delay of each piece of one page, in milliseconds."""
    content = page.file.read_bytes()
    size = -(-len(content) // PIECES)
    pieces = [content[start : start + size] for start in range(0, len(content), size)]
    script = origin.script = Script(pieces, PAUSE_S)
    script.may_end.set()
    arrivals = await fetch(port, page.host, until=b"")
    delays = []
    for sent_at in script.sent_at:
        arrived = next((one.at for one in arrivals if one.at >= sent_at), None)
        if arrived is None or arrived - sent_at > PAUSE_S / 2:
            raise RuntimeError("a piece of the page did not leave before the next one came")
        delays.append((arrived - sent_at) * 1e3)
    return delays


async def measure(origin: PausingOrigin, ports: dict[str, int], page: RealPage, rounds: int) -> dict[str, Delays]:
    """Measures the contenders in turns. An extra page, which is not counted, opens the connections."""
    seen: dict[str, list[list[float]]] = {name: [] for name in ports}
    for number in range(rounds + 1):
        for name, port in ports.items():
            delays = await delays_of_one(origin, port, page)
            if number:
                seen[name].append(delays)
    return {
        name: Delays(
            statistics.median(one[0] for one in rows),
            statistics.median(delay for one in rows for delay in one[1:]),
            max(delay for one in rows for delay in one),
        )
        for name, rows in seen.items()
    }


def first_byte(start, page: RealPage, rounds: int, address: str) -> dict[str, Delays]:
    """`start(port of the origin)` starts the contenders and returns their ports by name."""

    async def run() -> dict[str, Delays]:
        async with PausingOrigin(address) as origin:
            ports = await asyncio.to_thread(start, origin.port)
            return await measure(origin, ports, page, rounds)

    return asyncio.run(run())
