"""Small requests of one client while another client holds downloads that it does not read."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

from harness.boxes import OTHER_CLIENT, Boxes
from harness.link import Link
from harness.sockets import connected

from .bed import HOST, all_at_once, get, over_tls, standing
from .figure import Figure, together, wrong
from .files import path_of
from .origin import WEB

LINKS = ("maritime", "geo")
UNREAD = (4, 8, 16, 24)
REQUESTS = 10
READ_BYTES = 20_000
SETTLE_S = 40.0
TIMEOUT_S = 20.0
_keys = itertools.count(1)


def requests_blocked_by_unread(quick: bool) -> Figure:
    """Requests that do not succeed within `TIMEOUT_S`. Half of them are http, half https."""
    if quick:
        return _of("geo", [(8, False)])
    cases = list(itertools.product(UNREAD, (False, True)))
    return together(all_at_once(lambda profile: _of(profile, cases), LINKS, len(LINKS)))


def _of(profile: str, cases: list[tuple[int, bool]]) -> Figure:
    figures = []
    for unread, secure in cases:
        # A fresh pair for each case: held streams of the one before would count, too.
        with standing("pair", profile) as box, _held(box, unread, secure=secure):
            figures.append(wrong(_requests(box, f"{profile}, {unread} unread over {'https' if secure else 'http'}")))
    return together(figures)


@contextmanager
def _held(box: Boxes, count: int, *, secure: bool) -> Iterator[None]:
    """Opens downloads without end, and reads `READ_BYTES` of each. Waits until the link is still, or `SETTLE_S`."""
    with ExitStack() as stack:

        def hold(_: int) -> None:
            with suppress(OSError):
                plain = connected(box.clients, WEB, 443 if secure else 80, receive_bytes=16384, timeout_s=SETTLE_S)
                connection = stack.enter_context(over_tls(plain) if secure else plain)
                connection.sendall(f"GET /endless HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
                got = 0
                while got < READ_BYTES and (piece := connection.recv(4096)):
                    got += len(piece)

        with ThreadPoolExecutor(count) as pool:
            list(pool.map(hold, range(count)))
        assert box.link
        _settle(box.link)
        yield


def _settle(link: Link) -> None:
    deadline = time.monotonic() + SETTLE_S
    seen, since = -1, time.monotonic()
    while time.monotonic() < deadline and time.monotonic() - since < 2.0:
        packets = link.statistics()["down"]["offered"]["bytes"] // 100_000
        if packets != seen:
            seen, since = packets, time.monotonic()
        time.sleep(0.1)


def _requests(box: Boxes, name: str) -> list[tuple[str, str]]:
    def one(number: int) -> tuple[str, str]:
        path = path_of(kind="json", type="application/json", key=f"small-{next(_keys)}")
        reply = get(box, path, secure=bool(number % 2), source=OTHER_CLIENT, timeout_s=TIMEOUT_S)
        problem = "" if (reply.status, reply.problem) == (200, "") else f"{reply.status} {reply.problem}"
        return f"{name}, {'https' if number % 2 else 'http'} request {number}", problem

    return all_at_once(one, range(REQUESTS), REQUESTS)
