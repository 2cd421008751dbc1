"""The memory of a page while it passes: many pages at once, all of them paused just before their end.

WebAssembly memory never shrinks, so each size of page gets its own Envoy. The figure is the highest memory it held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from bench.contenders import Running
from bench.held_pages import PausingOrigin, Script, fetch
from harness.host.usage import forget_peak, peak_resident_kib, resident_kib

MARK = b"<p id=the-last-piece>"


@dataclass(frozen=True)
class Growth:
    """KiB a page: at the peak, and while all pages were paused."""

    peak_kib: float
    held_kib: float


async def growth(origin: PausingOrigin, contender: Running, page: bytes, host: str, at_once: int) -> Growth:
    """Passes one page, which creates connections and tables, and then many at once."""
    session = contender.child.process.pid
    await pass_pages(origin, contender.port, page, host, 1, lambda: None)
    before = resident_kib(session)
    forget_peak(session)
    held: list[int] = []
    await pass_pages(origin, contender.port, page, host, at_once, lambda: held.append(resident_kib(session)))
    return Growth((peak_resident_kib(session) - before) / at_once, (held[0] - before) / at_once)


async def pass_pages(
    origin: PausingOrigin, port: int, page: bytes, host: str, count: int, when_held: Callable[[], None]
) -> None:
    """Starts `count` pages, waits until all but the end of each has arrived, and then lets them end."""
    piece_bytes = 16 * 1024
    pieces = [page[start : start + piece_bytes] for start in range(0, len(page), piece_bytes)]
    script = origin.script = Script([*pieces, MARK])
    met = [asyncio.Event() for _ in range(count)]
    fetches = [asyncio.create_task(fetch(port, host, MARK, one)) for one in met]
    waiting = asyncio.gather(*(one.wait() for one in met))
    await asyncio.wait([waiting, *fetches], return_when=asyncio.FIRST_COMPLETED, timeout=120)
    if not waiting.done():
        problems = [one.exception() for one in fetches if one.done()]
        raise RuntimeError(f"the pages did not come: {problems}")
    when_held()
    script.may_end.set()
    await asyncio.gather(*fetches)


def of_about(content: bytes, size: int) -> bytes:
    """Repeats whole pages up to this size. The last piece must not fall into an element that the filter holds to its
    end."""
    return content * max(1, round(size / len(content)))
