"""The last section: for every missed goal, which round trips or bytes the time went to."""

from __future__ import annotations

import html
from typing import Any

from harness.lab.links import link
from harness.lab.measure import Run

from ..goals import Goal
from ..results import Results
from . import plots
from .figure import figure
from .sections import in_order

WORTH_SHOWING = 4
"""Waterfalls beside each other for a missed goal."""


def missed_goals(found: dict[str, tuple[dict[str, Any], Results]], everything: list[tuple[str, Goal]]) -> str:
    """A block for every condition in which a goal was missed."""
    missed = [(name, goal) for name, goal in everything if not goal.met]
    if not missed:
        return "<h2>Missed goals</h2><p>None.</p>"
    parts = [
        "<h2>Missed goals: where the time went</h2>",
        "<p>The link was either sending towards the client, which is bytes, or it was not, which is waiting: for "
        "names, handshakes, requests. "
        "Waiting is given in round trips of the link. In the waterfalls, grey is waiting for a connection, pale "
        "for the first byte, full "
        "colour receiving; the red line is the load event.</p>",
    ]
    for name, link_name, page, scheme in dict.fromkeys(
        (name, goal.link, goal.page, goal.scheme) for name, goal in missed
    ):
        own = [
            goal
            for other, goal in missed
            if (other, goal.link, goal.page, goal.scheme) == (name, link_name, page, scheme)
        ]
        parts.append(_block(found[name][1], link_name, page, scheme, own))
    return "".join(parts)


def _block(results: Results, link_name: str, page: str, scheme: str, goals: list[Goal]) -> str:
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
    rows = "".join(_account(contender, run) for contender, run in runs)
    falls = "".join(
        figure(plots.waterfall(run, until_ms), html.escape(f"{plots.title_of(contender)}: {run.load_ms / 1000:.2f} s"))
        for contender, run in chosen
    )
    return (
        f"<h3>{html.escape(link(link_name).title)}: {page} over {scheme}</h3><p>{html.escape(words)}</p>"
        "<table><tr><th></th><th class=n>load, s</th><th class=n>sending, s</th><th class=n>waiting, s</th>"
        "<th class=n>waiting, round trips</th><th class=n>of it before the first byte</th><th class=n>kB down</th>"
        f"<th class=n>connections</th><th class=n>DNS queries</th></tr>{rows}</table>"
        f'<details><summary>Waterfalls</summary><div class="row">{falls}</div></details>'
    )


def _account(contender: str, run: Run) -> str:
    """Sending and waiting of one load."""
    rtt_ms = link(run.link).rtt_ms
    sending = min(run.busy_ms, run.load_ms)
    waiting = run.load_ms - sending
    values = (
        f"{run.load_ms / 1000:.2f}", f"{sending / 1000:.2f}", f"{waiting / 1000:.2f}", f"{waiting / rtt_ms:.1f}",
        f"{run.first_byte_ms / rtt_ms:.1f}", f"{run.bytes_down / 1000:.0f}", str(run.connections), str(run.dns_queries),
    )  # fmt: skip
    return f"<tr><td>{plots.title_of(contender)}</td>{''.join(f'<td class=n>{value}</td>' for value in values)}</tr>"
