"""Waits for conditions instead of sleeping: a test takes no longer than needed, and a timeout names the condition."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


class Timeout(AssertionError):  # noqa: N818 - it reads as what happened
    """A condition did not become true in time."""


def wait_for(
    what: str, condition: Callable[[], Result | None], timeout_s: float = 30.0, interval_s: float = 0.02
) -> Result:
    """Returns the first true value of `condition`. Raises `Timeout`, which names `what`, after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Timeout(f"waited {timeout_s:g} s for {what}; last seen: {value!r}")
        time.sleep(interval_s)


def quickest(measure: Callable[[], float], enough_s: float, attempts: int = 5) -> float:
    """Measures until a time is under `enough_s`, and returns the least. A round trip that is really needed is in every
    measurement; the delay of a busy machine is not."""
    best = measure()
    for _ in range(attempts - 1):
        if best < enough_s:
            break
        best = min(best, measure())
    return best
