"""Runs groups in lanes side by side, as many as the machine can carry, and shows the progress.

Lanes on slow links leave the machine idle and share it. A lane on a fast link has the machine for itself. Each lane is
a process with its own bed, so lanes affect one another only through the machine's load.
"""

from __future__ import annotations

import multiprocessing
import queue
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TextIO

from harness.lab import watches
from harness.lab.contenders import CONTENDERS
from harness.lab.ideal import Weight
from harness.lab.links import CAPACITY
from harness.lab.measure import Run

from .lane import Message, run_group
from .plan import Group

BAR_WIDTH = 24
PLAIN_EVERY_S = 20.0
"""Seconds between lines of progress without a terminal."""


@dataclass
class Outcome:
    """The results of a set of groups."""

    runs: list[Run] = field(default_factory=list)
    weights: dict[str, Weight] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The results of special experiments, by experiment."""
    ended: dict[str, list[str]] = field(default_factory=dict)
    """The beds of special experiments that have results, by experiment."""
    errors: list[str] = field(default_factory=list)


class Runner:
    """Starts one group after the other while there is room."""

    def __init__(
        self,
        groups: list[Group],
        seed: int,
        watches: int,
        finished: Callable[[str, int], None] = lambda *_: None,
        before: Outcome | None = None,
    ) -> None:
        """`watches` is the number of inotify instances that all beds together may take. `finished` is called after each
        bed, with the name of its experiment and the number of beds that the experiment still has. So its results are
        saved even if others fail. `before` has the results of earlier sittings."""
        self._groups = groups
        self._finished = finished
        self._down: set[int] = set()
        self._watches = watches
        self._seed = seed
        self._context = multiprocessing.get_context("spawn")
        self._messages: Any = self._context.Queue()
        self._lanes: dict[int, Any] = {}
        self._progress = Progress(groups)
        self.outcome = before or Outcome()

    def run(self) -> Outcome:
        """Runs all groups. On an interruption the lanes take down their beds first."""

        # In each rank, heavy groups start first. Light ones fill the room that is left beside them.
        def place(number: int) -> tuple[int, float]:
            group = self._groups[number]
            return group.rank, -group.expected_total_ms()

        waiting = sorted(range(len(self._groups)), key=place)
        try:
            while waiting or self._lanes:
                for number in [n for n in waiting if self._fits(n)]:
                    if self._fits(number):
                        self._start(number)
                        waiting.remove(number)
                self._receive()
        finally:
            for lane in self._lanes.values():
                lane.terminate()
            for lane in self._lanes.values():
                lane.join(30)
            self._progress.end()
        return self.outcome

    def _fits(self, number: int) -> bool:
        together = [self._groups[lane] for lane in self._lanes] + [self._groups[number]]
        weight = sum(group.weight for group in together)
        return weight <= CAPACITY and sum(map(watches_of, together)) <= self._watches

    def _start(self, number: int) -> None:
        group = self._groups[number]
        lane = self._context.Process(target=run_group, args=(number, group, self._seed, self._messages))
        lane.start()
        self._lanes[number] = lane

    def _receive(self) -> None:
        try:
            message: Message = self._messages.get(timeout=1.0)
        except queue.Empty:
            self._bury()
            self._progress.show(len(self._lanes))
            return
        outcome, group = self.outcome, self._groups[message.group]
        outcome.runs += message.runs
        outcome.weights |= {name: Weight(**weight) for name, weight in message.weights.items()}
        outcome.absent |= message.absent
        if message.details:
            _merge(outcome.details.setdefault(group.experiment, {}), message.details)
            outcome.ended.setdefault(group.experiment, []).append(group.bed)
        if message.error:
            self._fail(group, message.error)
        if message.runs:
            self._progress.count(group, message.runs)
        if message.done:
            self._lanes.pop(message.group).join()
            self._take_down(message.group)
        self._progress.show(len(self._lanes))

    def _bury(self) -> None:
        """Makes an error of a lane that died without a message, instead of waiting forever."""
        for number, lane in list(self._lanes.items()):
            if not lane.is_alive() and self._messages.empty():
                del self._lanes[number]
                self._fail(self._groups[number], f"its lane ended with {lane.exitcode}")
                self._take_down(number)

    def _take_down(self, number: int) -> None:
        """Records that a group has ended."""
        self._progress.finish(number)
        self._down.add(number)
        name = self._groups[number].experiment
        own = {other for other, group in enumerate(self._groups) if group.experiment == name}
        self._finished(name, len(own - self._down))

    def _fail(self, group: Group, why: str) -> None:
        """Reports loads that were not made, at once and in the results."""
        self.outcome.errors.append(f"{group.experiment} on {group.link_name} ({', '.join(group.pages[:3])}): {why}")
        self._progress.say(f"NOT RUN: {self.outcome.errors[-1]}")


class Progress:
    """A bar and the remaining time: the expected time of the remaining loads, corrected by the pace so far."""

    def __init__(self, groups: list[Group], out: TextIO = sys.stderr) -> None:
        self._out = out
        self._groups = groups
        self._began_s = time.monotonic()
        self._total_ms = expected_total_ms(groups)
        self._left_ms = {number: group.expected_total_ms() * group.weight for number, group in enumerate(groups)}
        self._work_ms = sum(self._left_ms.values())
        self._loads = 0
        self._failed = 0
        self._shown_s = 0.0
        self._last = ""

    def count(self, group: Group, runs: list[Run]) -> None:
        """Records that a turn has ended."""
        number = self._groups.index(group)
        self._left_ms[number] = max(0.0, self._left_ms[number] - group.expected_ms(runs[0]) * group.weight)
        self._loads += len(runs)
        self._failed += sum(not run.complete for run in runs)
        last = runs[0]
        time_taken = f"{last.load_ms / 1000:.1f} s" if last.complete else "FAILED"
        self._last = f"{last.link} {last.page} {last.scheme} {last.contender} {time_taken}"

    def say(self, text: str) -> None:
        """Prints a line above the bar."""
        self._out.write(f"\r\033[K{text}\n" if self._out.isatty() else f"{text}\n")
        self._out.flush()

    def finish(self, number: int) -> None:
        """Records that a group has ended."""
        self._left_ms[number] = 0.0

    def show(self, lanes: int) -> None:
        """Draws the bar: in place on a terminal, as a line from time to time elsewhere."""
        now_s = time.monotonic()
        terminal = self._out.isatty()
        if now_s - self._shown_s < (0.2 if terminal else PLAIN_EVERY_S):
            return
        self._shown_s = now_s
        done = 1 - sum(self._left_ms.values()) / self._work_ms if self._work_ms else 1.0
        elapsed_s = now_s - self._began_s
        left_s = elapsed_s * (1 - done) / done if done > 0.05 else self._total_ms / 1000 * (1 - done)
        bar = "#" * int(done * BAR_WIDTH)
        failed = f", {self._failed} failed" if self._failed else ""
        line = (
            f"[{bar:<{BAR_WIDTH}}] {100 * done:3.0f} %  {clock(elapsed_s)} gone, {clock(left_s)} left  "
            f"{self._loads} loads{failed}, {lanes} lanes  {self._last}"
        )
        self._out.write(f"\r\033[K{line}" if terminal else f"{line}\n")
        self._out.flush()

    def end(self) -> None:
        """Leaves the bar behind."""
        if self._out.isatty():
            self._out.write("\n")


def _merge(into: dict[str, Any], more: dict[str, Any]) -> None:
    """Adds the results of another group of the same experiment."""
    for key, value in more.items():
        if isinstance(value, dict):
            _merge(into.setdefault(key, {}), value)
        elif isinstance(value, list):
            into[key] = into.get(key, []) + value
        else:
            into[key] = value


def watches_of(group: Group) -> int:
    """Returns the inotify instances of a bed for this group."""
    return watches.BROWSER + group.special_watches + sum(CONTENDERS[name].watches for name in group.contenders)


def expected_total_ms(groups: list[Group]) -> float:
    """Returns the expected time of all groups, side by side as far as they fit."""
    work = sum(group.expected_total_ms() * group.weight / CAPACITY for group in groups)
    longest = max((group.expected_total_ms() for group in groups), default=0.0)
    return max(work, longest)


def clock(seconds: float) -> str:
    """Formats seconds as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
