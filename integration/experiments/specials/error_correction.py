"""Forward error correction on a GPRS channel, simulated (MobiCom 2004, link layer).

No component of Longhaul carries it: neither Envoy nor Linux nor a QUIC stack has an engine. The paper simulated it,
too. The channel damages bytes independently. A codeword is a block of Reed and Solomon over bytes. The sender chooses
its share of parity: `2 t` parity bytes correct `t` damaged ones. A codeword with more damage is sent again after the
round trip of the radio link. The transfer ends with its last codeword.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

from harness.lab.links import Link, link

from ..plan import Group

CODEWORD_BYTES = 255
"""The longest codeword over bytes."""
RADIO_ROUND_TRIP_MS = 300.0
"""From a damaged codeword to its repetition: shorter than the link's, which ends at a server."""
PAGE_BYTES = 150_000
TRANSFERS = 100

POOR, GOOD = 0.009, 0.002
"""The paper's two channels, as damaged bytes of all bytes."""
MIX = ((0.0005, 0.8), (0.009, 0.2))
"""A channel that changes from transfer to transfer, with the paper's good channel as its mean."""


@dataclass(frozen=True)
class Choice:
    """The mean time of a transfer with a number of correctable bytes in each codeword."""

    correctable: int
    mean_ms: float

    @property
    def parity_share(self) -> float:
        """Returns the share of the bytes that are parity."""
        return 2 * self.correctable / CODEWORD_BYTES


def lost_share(damaged: float, correctable: int) -> float:
    """Returns the share of codewords with more damage than they correct."""
    return 1 - sum(
        math.comb(CODEWORD_BYTES, count) * damaged**count * (1 - damaged) ** (CODEWORD_BYTES - count)
        for count in range(correctable + 1)
    )


def transfer_ms(on: Link, damaged: float, correctable: int, draw: random.Random) -> float:
    """Returns the time of one page over the radio link."""
    codeword_ms = CODEWORD_BYTES / on.payload_bytes_per_ms
    lost = lost_share(damaged, correctable)
    to_send = -(-PAGE_BYTES // (CODEWORD_BYTES - 2 * correctable))
    repeats: list[float] = []
    now_ms = 0.0
    while to_send or repeats:
        if repeats and (repeats[0] <= now_ms or not to_send):
            now_ms = max(now_ms, heappop(repeats))
        else:
            to_send -= 1
        now_ms += codeword_ms
        if draw.random() < lost:
            heappush(repeats, now_ms + RADIO_ROUND_TRIP_MS)
    return now_ms


def sweep(on: Link, channel: Callable[[random.Random], float], seed: int, most: int = 12) -> list[Choice]:
    """Returns the mean time for every number of correctable bytes up to `most`. All of them meet the same channels."""
    found = []
    for correctable in range(most + 1):
        draw = random.Random(f"{seed} {correctable}")
        channels = random.Random(seed)
        times = [transfer_ms(on, channel(channels), correctable, draw) for _ in range(TRANSFERS)]
        found.append(Choice(correctable, sum(times) / len(times)))
    return found


def best(choices: Sequence[Choice]) -> Choice:
    """Returns the choice with the shortest time."""
    return min(choices, key=lambda choice: choice.mean_ms)


def adaptive_ms(on: Link, seed: int) -> float:
    """Returns the mean time on the changing channel for a sender that knows the best choice of each state."""
    return sum(weight * best(sweep(on, lambda _, damaged=damaged: damaged, seed)).mean_ms for damaged, weight in MIX)


def _mixed(draw: random.Random) -> float:
    return draw.choices([damaged for damaged, _ in MIX], [weight for _, weight in MIX])[0]


def fec(_: Path, group: Group, seed: int) -> dict[str, Any]:
    """Simulates the paper's channels, and one that changes."""
    on = link(group.link_name)
    figures: dict[str, float] = {}
    rows = []
    for name, damaged in (("poor", POOR), ("good", GOOD)):
        choices = sweep(on, lambda _, damaged=damaged: damaged, seed)
        least = best(choices)
        without = choices[0].mean_ms
        rows.append({
            "channel": name, "damaged": damaged, "parity": least.parity_share, "best_ms": least.mean_ms,
            "without_ms": without,
        })  # fmt: skip
        figures[f"fec_{name}_best_parity"] = round(least.parity_share, 4)
        figures[f"fec_{name}_time_to_none"] = round(least.mean_ms / without, 4)
    fixed = best(sweep(on, _mixed, seed))
    figures["fec_adaptive_to_fixed"] = round(adaptive_ms(on, seed) / fixed.mean_ms, 4)
    return {"figures": figures, "rows": rows}
