"""The last section: for every missed goal, the round trips and bytes that took the time."""

from __future__ import annotations

from typing import Any

from harness.lab.links import link
from harness.lab.measure import Run

from ..goals import Goal
from ..results import Results
from . import plots
from .blocks import Block, Details, Heading, Plot, Plots, Row, Table, Text
from .sections import in_order

WORTH_SHOWING = 4
"""The number of waterfalls side by side for a missed goal."""


ABOUT = (
    "The link was either sending towards the client, which is bytes, or it was not, which is waiting: for names, "
    "handshakes, requests. Waiting is given in round trips of the link. In the waterfalls, grey is waiting for a "
    "connection, pale for the first byte, full colour receiving; the red line is the load event."
)
HEADS = (
    "", "load, s", "sending, s", "waiting, s", "waiting, round trips", "of it before the first byte", "kB down",
    "connections", "DNS queries",
)  # fmt: skip


def missed_goals(found: dict[str, tuple[dict[str, Any], Results]], everything: list[tuple[str, Goal]]) -> list[Block]:
    """Returns blocks for every condition in which a goal was missed."""
    missed = [(name, goal) for name, goal in everything if not goal.met]
    if not missed:
        return [Heading("Missed goals", 2), Text("None.")]
    blocks: list[Block] = [Heading("Missed goals: where the time went", 2), Text(ABOUT)]
    for name, link_name, page, scheme in dict.fromkeys(
        (name, goal.link, goal.page, goal.scheme) for name, goal in missed
    ):
        own = [
            goal
            for other, goal in missed
            if (other, goal.link, goal.page, goal.scheme) == (name, link_name, page, scheme)
        ]
        blocks += _condition(found[name][1], link_name, page, scheme, own)
    return blocks


def _condition(results: Results, link_name: str, page: str, scheme: str, goals: list[Goal]) -> list[Block]:
    cells = in_order([
        cell for cell in results.cells.values()
        if (cell.link, cell.page, cell.scheme, cell.cache) == (link_name, page, scheme, "cold")
    ])  # fmt: skip
    runs = [(cell.contender, run) for cell in cells if (run := cell.typical())]
    shown = {"direct", *(goal.contender for goal in goals)}
    best = sorted((pair for pair in runs if pair[0] not in shown), key=lambda pair: pair[1].load_ms)
    chosen = [pair for pair in runs if pair[0] in shown] + best[: WORTH_SHOWING - len(shown)]
    until_ms = max((run.load_ms for _, run in chosen), default=1.0)
    words = "; ".join(f"{goal.contender}: {goal.what} {goal.value:.2f}, goal {goal.bound:g}" for goal in goals)
    falls = [
        Plot(plots.waterfall(run, until_ms), f"{plots.title_of(contender)}: {run.load_ms / 1000:.2f} s")
        for contender, run in chosen
    ]
    return [
        Heading(f"{link(link_name).title}: {page} over {scheme}"),
        Text(words),
        Table(HEADS, [_account(contender, run) for contender, run in runs]),
        Details("Waterfalls", [Plots(falls)]),
    ]


def _account(contender: str, run: Run) -> Row:
    """Returns the times of sending and of waiting in one load."""
    rtt_ms = link(run.link).rtt_ms
    sending = min(run.busy_ms, run.load_ms)
    waiting = run.load_ms - sending
    values = (
        f"{run.load_ms / 1000:.2f}", f"{sending / 1000:.2f}", f"{waiting / 1000:.2f}", f"{waiting / rtt_ms:.1f}",
        f"{run.first_byte_ms / rtt_ms:.1f}", f"{run.bytes_down / 1000:.0f}", str(run.connections), str(run.dns_queries),
    )  # fmt: skip
    return Row([plots.title_of(contender), *values])
