"""Seconds until a client hears a server that speaks first."""

from __future__ import annotations

import time

from harness.boxes import Boxes
from harness.sockets import connected

from .bed import standing
from .figure import Figure
from .origin import BANNER, GREETING

PATIENCE_S = 90.0


def banner_s(port: int) -> Figure:
    """Returns the longest wait, of an edge and a pair."""
    waits = {}
    for kind in ("edge", "pair"):
        with standing(kind) as box:
            waits[kind] = _wait_s(box, port)
    return Figure(max(waits.values()), len(waits), [f"{kind}: {wait:.2f} s" for kind, wait in waits.items()])


def _wait_s(box: Boxes, port: int) -> float:
    began_s = time.monotonic()
    with connected(box.clients, BANNER, port, timeout_s=PATIENCE_S) as connection:
        heard = b""
        while len(heard) < len(GREETING):
            piece = connection.recv(100)
            if not piece:
                return PATIENCE_S
            heard += piece
    return time.monotonic() - began_s


def banner_s_443(quick: bool) -> Figure:  # noqa: ARG001 - nothing is shorter
    """On port 443, where a TLS client would have spoken."""
    return banner_s(443)


def banner_s_80(quick: bool) -> Figure:  # noqa: ARG001 - nothing is shorter
    """On port 80."""
    return banner_s(80)
