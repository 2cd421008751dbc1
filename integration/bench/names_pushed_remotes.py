"""Remotes without any name in their memory, and what a remote counts of the names that its ground sends."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass

from bench.names_remote import counted
from harness.boxes.pair import Pair
from harness.boxes.pep import Pep
from harness.host.waiting import wait_for

STREAM_TIMEOUT_S = 60.0
STILL_S = 2.0
"""The ground sends popular names each second, so a longer pause means that nothing else comes."""


@dataclass(frozen=True)
class Counts:
    """The counters of a remote, or their growth."""

    from_memory: int = 0
    """Lookups with a response from memory."""
    pushed_first: int = 0
    """Those of them that were the first use of a response that the ground had sent."""
    over_link: int = 0
    """Lookups that clients waited for."""
    refreshes: int = 0
    pushed: int = 0
    """Responses that the ground sent."""
    pushed_bytes: int = 0
    used_bytes: int = 0

    def __sub__(self, before: Counts) -> Counts:
        """Returns the growth since `before`."""
        return Counts(*(now - then for now, then in zip(vars(self).values(), vars(before).values(), strict=True)))

    @property
    def at_zero_rtt(self) -> float:
        """The share of clients' lookups with a response from memory."""
        every = self.from_memory + self.over_link
        return self.from_memory / every if every else 0.0


def counts_of(remote: Pep) -> Counts:
    """Returns the counters of a remote."""
    found = (
        counted(remote, "coredns_remember_hits_total"),
        counted(remote, "coredns_remember_hits_total", age="pushed"),
        counted(remote, "coredns_remember_asked_total", reason="new"),
        counted(remote, "coredns_remember_asked_total", reason="refresh"),
        counted(remote, "coredns_remember_pushed_total"),
        counted(remote, "coredns_remember_pushed_bytes_total"),
        counted(remote, "coredns_remember_pushed_used_bytes_total"),
    )
    return Counts(*map(int, found))


def until_stream(both: Pair) -> None:
    """Waits until the ground may send names to the remote."""

    def is_open() -> bool:
        return counted(both.remote, "coredns_remember_pushed_stream") == 1

    wait_for("the stream of names", is_open, timeout_s=STREAM_TIMEOUT_S, interval_s=0.1)


def until_pushed(both: Pair, least: int, timeout_s: float = 60.0) -> int:
    """Waits until the ground has sent so many responses, and then no further one for a while. Returns their number."""
    seen, since_s = -1, time.monotonic()

    def settled() -> bool:
        nonlocal seen, since_s
        now = counts_of(both.remote).pushed
        if now != seen:
            seen, since_s = now, time.monotonic()
        return now >= least and time.monotonic() - since_s >= STILL_S

    wait_for(f"{least} names that the ground sends", settled, timeout_s=timeout_s, interval_s=0.1)
    return seen


def restart(both: Pair) -> None:
    """Starts a stopped remote."""
    # The context that started the pair stops this one.
    both.remote.__enter__()
    both.until_piped()
    until_stream(both)


def renew(both: Pair) -> None:
    """Replaces the remote by one that knows no name. The ground stays as it is."""
    both.remote.child.stop()
    shutil.rmtree(both.remote.state)
    restart(both)
