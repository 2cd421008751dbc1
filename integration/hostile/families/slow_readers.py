"""Clients that request much and read nothing. A client behind a slow link does so, so its cost must be bounded."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from urllib.parse import quote

from harness.host.waiting import wait_for

from ..beds import HOST, Target, fresh
from ..cases import Case
from ..wire import request_bytes

UNCACHEABLE = ("cache-control: no-store",)
CACHEABLE = ("cache-control: max-age=600",)
LIMIT_MIB: dict[tuple[str, ...], float] = {UNCACHEABLE: 1.0, CACHEABLE: 4.0}
"""Memory that one slow client may cost a box."""
REMOTE_MIB = 0.5
"""The memory that it may cost a remote beyond that: by the cache, a response that is not stored takes two hops more."""


def cost_mib(
    target: Target,
    lines: Sequence[str],
    *,
    clients: int,
    body_bytes: int,
    moved: bool = False,
    chunked: bool = False,
    asked_before: int = 2,
) -> float:
    """Returns the memory for each client at the box that grows most, while all of them read nothing of a large body."""
    words = [fresh("slow") for _ in range(clients)]
    query = "&".join(f"h={quote(line)}" for line in lines) + ("&chunked=1" if chunked else "")
    urls = [f"/big/{body_bytes}?{query}&word={word}" for word in words]
    # The first requests for a URL determine what the filter knows of it. They read a little and close.
    for url in urls[:2]:
        for _ in range(asked_before):
            _take_a_little(target, url, moved)
    before = _settled(target)
    with ExitStack() as stack:
        for url in urls:
            stack.enter_context(_ask(target, url, moved))
        most = _most(target, before, seconds=6.0)
    return most / clients


def _ask(target: Target, url: str, moved: bool):
    if moved:
        connection = target.open_tls(receive_bytes=16384)
        connection.sendall(request_bytes("GET", f"/{HOST}{url}", "pep.example.net"))
    else:
        connection = target.open(receive_bytes=16384)
        connection.sendall(request_bytes("GET", url, HOST))
    return connection


def _take_a_little(target: Target, url: str, moved: bool) -> None:
    with _ask(target, url, moved) as connection:
        connection.settimeout(20)
        connection.recv(4096)


def _growth(now: Sequence[float], before: Sequence[float]) -> float:
    """Returns the growth of the box that grew most."""
    return max(after - was for after, was in zip(now, before, strict=True))


def _settled(target: Target) -> list[float]:
    """Returns the memory of each box when no request is under way any more."""
    readings = [target.heaps_mib()]

    def is_still() -> bool:
        readings.append(target.heaps_mib())
        return all(abs(now - was) < 0.5 for now, was in zip(readings[-1], readings[-2], strict=True))

    wait_for("memory to settle", is_still, 30, 0.5)
    return readings[-1]


def _most(target: Target, before: Sequence[float], *, seconds: float) -> float:
    """Returns the highest growth above `before`. Ends when it has not grown for a while."""
    most, deadline, grown_at = 0.0, time.monotonic() + 30, time.monotonic()
    while time.monotonic() < deadline and time.monotonic() - grown_at < seconds / 2:
        now = _growth(target.heaps_mib(), before)
        if now > most + 0.25:
            most, grown_at = now, time.monotonic()
        time.sleep(0.1)
    return most


def _held(lines: Sequence[str], **how: object) -> Callable[[Target], str]:
    def attack(target: Target) -> str:
        limit = LIMIT_MIB[tuple(lines)] + (REMOTE_MIB if target.both else 0)
        each = cost_mib(target, lines, **how)  # type: ignore[arg-type]
        if each > limit:
            # Other work of the box grows its heap, too, by up to 0.2 MiB a client. The cost of clients shows in both.
            each = min(each, cost_mib(target, lines, **how))  # type: ignore[arg-type]
        return "" if each <= limit else f"a slow client costs {each:.1f} MiB, the limit is {limit:g}"

    return attack


# Ten, because all clients share the buffers of the pipe's connection.
_SHORT = {"clients": 10, "body_bytes": 40_000_000}
_LONG = {"clients": 10, "body_bytes": 200_000_000}

CASES = [
    Case("uncacheable body with a length", _held(UNCACHEABLE, **_SHORT)),
    Case("uncacheable body, chunked", _held(UNCACHEABLE, chunked=True, **_SHORT)),
    Case("uncacheable body of a moved URL", _held(UNCACHEABLE, moved=True, **_SHORT), ("edge",)),
    Case("cacheable body with a length", _held(CACHEABLE, **_SHORT)),
    Case("cacheable body, chunked", _held(CACHEABLE, chunked=True, **_SHORT)),
    Case("ten of 200 MB, uncacheable", _held(UNCACHEABLE, **_LONG), is_long=True),
    Case("ten of 200 MB, cacheable", _held(CACHEABLE, **_LONG), is_long=True),
    Case("ten of 200 MB, moved, uncacheable", _held(UNCACHEABLE, moved=True, **_LONG), ("edge",), is_long=True),
]
