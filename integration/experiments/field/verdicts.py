"""The verdict of loads about a ratio: its value, its spread, and whether they can tell it from no difference.

The spread is that of a bootstrap: loads are drawn again with replacement, a thousand times, and nine of ten ratios lie
within it. The draws have a fixed seed, so the same loads always give the same verdict.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..goals import NOISE

DRAWS = 1000
OUTSIDE = 0.05
"""The part of the draws beyond each end of the spread."""
FEWEST = 3
"""Fewer loads have no spread."""

Statistic = Callable[[Sequence[float]], float]


class Verdict(StrEnum):
    """The verdict of loads about a way beside direct."""

    NOT_SLOWER = "not slower"
    """All of the spread is at most 1.02."""
    SLOWER = "slower"
    """All of the spread is above it."""
    UNCLEAR = "unclear"
    """The spread hides it, or there are too few loads."""
    FAILED = "failed"
    """No load ended."""


@dataclass(frozen=True)
class Ratio:
    """The time of a way as a part of the direct one, and its spread."""

    value: float
    low: float
    high: float
    loads: int
    """The fewer ones of both ways."""

    @property
    def verdict(self) -> Verdict:
        """Returns what the loads say."""
        if self.loads < FEWEST:
            return Verdict.UNCLEAR
        if self.high <= NOISE:
            return Verdict.NOT_SLOWER
        return Verdict.SLOWER if self.low > NOISE else Verdict.UNCLEAR


def p95(seconds: Sequence[float]) -> float:
    """Returns the time that one load of twenty exceeds."""
    return statistics.quantiles(seconds, n=20, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]


def ratio(ours: Sequence[float], theirs: Sequence[float], of: Statistic = statistics.median) -> Ratio | None:
    """Returns the ratio of both statistics, or None where a way has no load."""
    if not ours or not theirs:
        return None
    draw = random.Random(0)
    drawn = sorted(of(draw.choices(ours, k=len(ours))) / of(draw.choices(theirs, k=len(theirs))) for _ in range(DRAWS))
    beyond = round(DRAWS * OUTSIDE)
    return Ratio(of(ours) / of(theirs), drawn[beyond], drawn[-1 - beyond], min(len(ours), len(theirs)))
