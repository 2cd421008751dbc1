"""The first new name after an outage of 32 s, by a pair without a list and without boxes.

A client looks up another name each quarter of a second, during the outage and after it. The time of a way is that from
the link's return to the first response to a query that was sent after the return. TCP's retransmission timer grows in
an outage, and what is on the pipe waits for it. Linux bounds the timer from 6.15 on (`TCP_RTO_MAX_MS`), if a program
sets it.
"""

from __future__ import annotations

import platform
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.names_pairs import Way, side_by_side, site_of
from bench.names_queries import Lookup, Pace, look_up, questions
from harness.host.waiting import wait_for
from harness.lab.links import link
from harness.lab.quiet import wait_until_quiet
from harness.results.figures import at_most, table

TARGETS = [at_most("first_answer_after_32s_outage_s", 3)]
LINK = "geo"
OUTAGE_S = 32
PATIENCE_S = 45
"""The longest time after an outage that a client tries. Without a bound, the timer of the pipe takes 24 s."""
PACE = Pace(pause_s=0.25, timeout_s=10, attempts=1)
ROUNDS, QUICK_ROUNDS = 4, 1
TCP_RTO_MAX_MS = 44
"""The option's number (linux/tcp.h). Python has no name for it."""


@dataclass(frozen=True)
class Outage:
    """One outage on one way."""

    first_s: float | None
    """The time from the link's return to the first response. None if none came in time."""
    during: int
    """Lookups during the outage that got a response before its end."""
    lost_packets: int


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Interrupts the links of both ways at the same time, several times."""
    turns = range(QUICK_ROUNDS if quick else ROUNDS)
    rounds = [[f"n{one}.o{turn}.example.org" for one in range(_names_of_a_round())] for turn in turns]
    site = site_of({name: "203.0.113.9" for names in rounds for name in names})
    seen: dict[str, list[Outage]] = {"pair": [], "direct": []}
    with side_by_side(folder, site, LINK) as ways, ThreadPoolExecutor(len(ways)) as pool:
        for names in rounds:
            for way, outage in zip(ways, pool.map(one_outage, ways, [names] * len(ways)), strict=True):
                seen[way.name].append(outage)
    print(rows(seen), flush=True)
    figures = {
        "first_answer_after_32s_outage_s": slowest(seen["pair"]),
        "first_answer_after_32s_outage_s_direct": slowest(seen["direct"]),
    }
    return figures, {
        "kernel": platform.release(),
        "kernel has TCP_RTO_MAX_MS": bounds_timers(),
        "outages": {way: [asdict(one) for one in every] for way, every in seen.items()},
    }


def _names_of_a_round() -> int:
    return round((OUTAGE_S + PATIENCE_S) / PACE.pause_s)


def one_outage(way: Way, names: Sequence[str]) -> Outage:
    """Interrupts the link of a way, and asks until a query after its end has a response."""
    _until_it_resolves(way, f"before.{names[0]}")
    way.wire.reset()
    way.wire.outage(f"{OUTAGE_S}s drop")
    back_s = time.monotonic() + OUTAGE_S

    def is_first(lookup: Lookup) -> bool:
        return lookup.asked_s >= back_s and not lookup.failed

    lookups = look_up(way.line.clients, questions(names), PACE, enough=is_first)
    lost = way.wire.statistics()
    first = next((one.answered_s for one in lookups if is_first(one)), None)
    during = sum(not one.failed and (one.answered_s or back_s) < back_s for one in lookups)
    packets = sum(lost[end]["dropped"]["outage"]["packets"] for end in ("up", "down"))
    if during or not packets:
        raise RuntimeError(f"{way.name}: the link was not away: {during} responses, {packets} packets lost")
    return Outage(None if first is None else first - back_s, during, packets)


def _until_it_resolves(way: Way, new_name: str) -> None:
    """Waits until the way works as before any outage, and nothing crosses the link."""
    if way.pair:
        way.pair.until_piped()
    wait_for("a response", lambda: not look_up(way.line.clients, questions([new_name]))[0].failed, 60)
    wait_until_quiet(way.wire, link(LINK).rtt_ms)


def slowest(outages: Sequence[Outage]) -> float | None:
    """Returns the longest time. None if the client got no response after one of the outages."""
    times = [one.first_s for one in outages]
    known = [one for one in times if one is not None]
    if len(known) < len(times):
        print(f"no response within {PATIENCE_S} s after {len(times) - len(known)} of {len(times)} outages", flush=True)
        return None
    return max(known)


def bounds_timers() -> bool:
    """Returns true if the kernel knows the option that bounds the timer."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        try:
            made.getsockopt(socket.IPPROTO_TCP, TCP_RTO_MAX_MS)
        except OSError:
            return False
        return True


def rows(seen: dict[str, list[Outage]]) -> str:
    """Returns the table of the outages."""
    lines = [["seconds to the first response", *seen]]
    for number, outages in enumerate(zip(*seen.values(), strict=True)):
        times = ("none" if one.first_s is None else f"{one.first_s:.2f}" for one in outages)
        lines.append([f"outage {number + 1}", *times])
    return table(lines)
