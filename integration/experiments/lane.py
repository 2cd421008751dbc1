"""Runs one group in its own process, and reports its progress to the runner in messages."""

from __future__ import annotations

import signal
import tempfile
import traceback
from dataclasses import asdict, dataclass, field
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

from harness.host.artifacts import Missing
from harness.host.processes import end_with_parent
from harness.lab.bed import standing
from harness.lab.contenders import contender
from harness.lab.ideal import timeout_s
from harness.lab.measure import Run, measure
from harness.lab.pages import Page, make_page, second_page
from harness.lab.saved import SavedPage
from harness.lab.tables import page_table

from .plan import Group
from .specials import SPECIALS


@dataclass(frozen=True)
class Message:
    """A report of a lane."""

    group: int
    runs: list[Run] = field(default_factory=list)
    weights: dict[str, dict[str, int]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    """The results of a special experiment by name: figures under "figures", the rest for the report."""
    error: str = ""
    done: bool = False


def run_group(number: int, group: Group, seed: int, messages: Queue[Message]) -> None:
    """Runs a lane's process. It reports a bed that fails instead of raising, so the other lanes continue."""
    # Ctrl-C reaches every process of a terminal. One handler for both signals is enough.
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, _stop)
    end_with_parent()
    try:
        with tempfile.TemporaryDirectory(prefix="lh-exp-") as folder:
            if group.special:
                details = SPECIALS[group.special](Path(folder), group, seed)
                messages.put(Message(number, absent=details.pop("absent", {}), details=details))
            else:
                _run(number, group, seed, messages, Path(folder))
    except Missing as reason:
        messages.put(Message(number, error=str(reason)))
    except (Exception, SystemExit):
        messages.put(Message(number, error=traceback.format_exc()))
    finally:
        messages.put(Message(number, done=True))
        messages.close()
        messages.join_thread()


def _run(number: int, group: Group, seed: int, messages: Queue[Message], folder: Path) -> None:
    pages = {name: _page(name) for name in group.pages}
    seconds = {name: second_page(make_page(page_table(name))) for name in group.seconds}
    contenders = [contender(name) for name in group.contenders]
    everything = [*pages.values(), *seconds.values()]
    https = "https" in group.schemes or not group.as_shipped
    with standing(
        folder, group.link, everything, contenders, seed=seed, https=https, as_shipped=group.as_shipped
    ) as bed:
        for page in pages.values():
            if isinstance(page, SavedPage):
                bed.weights[page.name] = page.learn(bed.track, group.schemes, timeout_s(page.name, group.link))
        weights = {name: asdict(weight) for name, weight in bed.weights.items()}
        messages.put(Message(number, weights=weights, absent=bed.absent))
        for turn in group.turns(seed):
            if turn.contender in bed.absent:
                continue
            runs = measure(
                bed.track, pages[turn.page], bed.contenders[turn.contender], turn,
                warm=turn.contender in group.warm, timeout_s=timeout_s(turn.page, group.link),
                second=seconds.get(turn.page), pictures=group.pictures,
            )  # fmt: skip
            messages.put(Message(number, runs=runs))


def _page(name: str) -> Page | SavedPage:
    table = page_table(name)
    return SavedPage(table) if table.saved else make_page(table)


def _stop(*_: Any) -> None:
    """Exits through every context manager, so that nothing of the bed remains."""
    raise SystemExit(1)
