"""Puts the report together: summary, goals, each experiment, what missed goals went to, method."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from ..goals import Goal, goals
from ..results import Results
from . import sections, summary
from .method import method
from .missed import missed_goals
from .style import STYLE

Found = dict[str, tuple[dict[str, Any], Results]]
"""Experiments by name: the JSON as written, and its cells."""


def write_report(path: Path, found: Found) -> Path:
    """Writes one self-contained file."""
    everything = [(name, goal) for name, (_, results) in found.items() for goal in goals(results)]
    parts = [
        "<h1>Longhaul: what it gains, where, and where it does not</h1>",
        _provenance(found),
        summary.summary(found),
        "<h2>Goals</h2>",
        goal_table(everything),
        *sections.sections(found),
        missed_goals(found, everything),
        method(found),
    ]
    body = "\n".join(parts)
    path.write_text(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Longhaul: experiments</title><style>{STYLE}</style></head><body><main>{body}</main></body></html>\n"
    )
    return path


def goal_table(everything: list[tuple[str, Goal]]) -> str:
    """Every goal with its value."""
    if not everything:
        return "<p>None of the goals concerns what was run.</p>"
    rows = "".join(
        f'<tr class="{"met" if goal.met else "missed"}"><td>{html.escape(goal.what)}</td><td>{goal.contender}</td>'
        f"<td>{goal.link}</td><td>{goal.page}</td><td>{goal.scheme}</td><td class=n>{goal.value:.3f}</td>"
        f"<td class=n>≤ {goal.bound:g}</td><td>{'met' if goal.met else 'missed'}</td></tr>"
        for _, goal in sorted(everything, key=lambda pair: (pair[1].met, pair[1].what))
    )
    met = sum(goal.met for _, goal in everything)
    return (
        f"<p>{met} of {len(everything)} met. Ratios of medians of one run; “never slower” allows 2 % of chance.</p>"
        "<details open><summary>All "
        "goals</summary><table><tr><th>goal</th><th>contender</th><th>link</th><th>page</th><th></th>"
        f"<th>value</th><th>goal</th><th></th></tr>{rows}</table></details>"
    )


def _provenance(found: Found) -> str:
    lines = [
        f"{name}: {text['when']}, {text['repeats']} loads of each kind, seed {text['seed']}"
        for name, (text, _) in found.items()
    ]
    absent = {name: reason for text, _ in found.values() for name, reason in text["absent"].items()}
    lines += [f"{html.escape(name)} took no part: {html.escape(reason)}" for name, reason in absent.items()]
    lines += [f"<b>not run</b>: {html.escape(error[-300:])}" for text, _ in found.values() for error in text["errors"]]
    return '<p class="small">' + "<br>".join(lines) + "</p>"
