"""Runs groups in lanes side by side, as many as the machine bears, and shows how far it is.

Lanes on slow links leave the machine idle, and share it; a lane on a fast link has it for itself. Each is a process
with a bed of its own, so that nothing one does can be seen by another but through the machine's load.
"""

from __future__ import annotations

import multiprocessing
import queue
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TextIO

from harness.lab.contenders import CONTENDERS
from harness.lab.ideal import Weight
from harness.lab.links import CAPACITY
from harness.lab.measure import Run

from .lane import Message, run_group
from .plan import Group

BAR_WIDTH = 24
PLAIN_EVERY_S = 20.0
"""Between lines of progress where there is no terminal."""


@dataclass
class Outcome:
    """Everything that came of a set of groups."""

    runs: list[Run] = field(default_factory=list)
    weights: dict[str, Weight] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What special experiments found, by experiment."""
    errors: list[str] = field(default_factory=list)


class Runner:
    """Takes groups one after the other while there is room."""

    def __init__(
        self, groups: list[Group], seed: int, watches: int, finished: Callable[[str], None] = lambda _: None
    ) -> None:
        """`watches`: inotify instances that beds may take together. `finished` is told each experiment whose last bed
        is down, so that its results are kept whatever becomes of the others."""
        self._groups = groups
        self._finished = finished
        self._down: set[int] = set()
        self._watches = watches
        self._seed = seed
        self._context = multiprocessing.get_context("spawn")
        self._messages: Any = self._context.Queue()
        self._lanes: dict[int, Any] = {}
        self._progress = Progress(groups)
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """Runs all; on an interruption the lanes take down their beds first."""
        # Heavy groups first: the light ones fill what room is left beside each other.
        waiting = sorted(range(len(self._groups)), key=lambda n: -self._groups[n].expected_total_ms())
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
        weight = sum(group.link.weight for group in together)
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
        if message.error:
            self._fail(group, message.error)
        if message.runs:
            self._progress.count(group, message.runs)
        if message.done:
            self._lanes.pop(message.group).join()
            self._take_down(message.group)
        self._progress.show(len(self._lanes))

    def _bury(self) -> None:
        """A lane that died without a word is an error, not a wait for ever."""
        for number, lane in list(self._lanes.items()):
            if not lane.is_alive() and self._messages.empty():
                del self._lanes[number]
                self._fail(self._groups[number], f"its lane ended with {lane.exitcode}")
                self._take_down(number)

    def _take_down(self, number: int) -> None:
        """A group is over."""
        self._progress.finish(number)
        self._down.add(number)
        name = self._groups[number].experiment
        if all(other in self._down for other, group in enumerate(self._groups) if group.experiment == name):
            self._finished(name)

    def _fail(self, group: Group, why: str) -> None:
        """Loads that were not made are said at once, and again in the results."""
        self.outcome.errors.append(f"{group.experiment} on {group.link_name} ({', '.join(group.pages[:3])}): {why}")
        self._progress.say(f"NOT RUN: {self.outcome.errors[-1]}")


class Progress:
    """A bar, and the time left: what is expected of the remaining loads, corrected by how the past ones went."""

    def __init__(self, groups: list[Group], out: TextIO = sys.stderr) -> None:
        self._out = out
        self._groups = groups
        self._began_s = time.monotonic()
        self._total_ms = expected_total_ms(groups)
        self._left_ms = {number: group.expected_total_ms() * group.link.weight for number, group in enumerate(groups)}
        self._work_ms = sum(self._left_ms.values())
        self._loads = 0
        self._failed = 0
        self._shown_s = 0.0
        self._last = ""

    def count(self, group: Group, runs: list[Run]) -> None:
        """A turn is over."""
        number = self._groups.index(group)
        self._left_ms[number] = max(0.0, self._left_ms[number] - group.expected_ms(runs[0]) * group.link.weight)
        self._loads += len(runs)
        self._failed += sum(not run.complete for run in runs)
        last = runs[0]
        time_taken = f"{last.load_ms / 1000:.1f} s" if last.complete else "FAILED"
        self._last = f"{last.link} {last.page} {last.scheme} {last.contender} {time_taken}"

    def say(self, text: str) -> None:
        """A line above the bar."""
        self._out.write(f"\r\033[K{text}\n" if self._out.isatty() else f"{text}\n")
        self._out.flush()

    def finish(self, number: int) -> None:
        """A group is over."""
        self._left_ms[number] = 0.0

    def show(self, lanes: int) -> None:
        """Draws the bar: in place on a terminal, now and then elsewhere."""
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
    """Adds what another group of the same experiment found."""
    for key, value in more.items():
        if isinstance(value, dict):
            _merge(into.setdefault(key, {}), value)
        elif isinstance(value, list):
            into[key] = into.get(key, []) + value
        else:
            into[key] = value


def watches_of(group: Group) -> int:
    """Inotify instances of a bed for this group."""
    return group.special_watches + sum(CONTENDERS[name].watches for name in group.everybody() or group.contenders)


def expected_total_ms(groups: list[Group]) -> float:
    """How long all groups are likely to take, side by side as far as they fit."""
    work = sum(group.expected_total_ms() * group.link.weight / CAPACITY for group in groups)
    longest = max((group.expected_total_ms() for group in groups), default=0.0)
    return max(work, longest)


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
