"""Composes the report: summary, goals, each experiment, the time behind missed goals, method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.results.html import template

from ..goals import Goal, goals
from ..results import Results
from . import sections, summary
from .blocks import Block, Details, Heading, Notes, Row, Table, Text
from .method import method
from .missed import missed_goals

TEMPLATE = Path(__file__).with_name("templates") / "report.html.j2"

Found = dict[str, tuple[dict[str, Any], Results]]
"""Experiments by name: the JSON as written, and its cells."""


def write_report(path: Path, found: Found) -> Path:
    """Writes one self-contained file."""
    everything = [(name, goal) for name, (_, results) in found.items() for goal in goals(results)]
    blocks = [
        _provenance(found),
        *summary.summary(found),
        Heading("Goals", 2),
        *goal_table(everything),
        *sections.sections(found),
        *missed_goals(found, everything),
        *method(found),
    ]
    path.write_text(html_of(blocks))
    return path


def html_of(blocks: list[Block]) -> str:
    """Returns the page that holds the blocks."""
    return template(TEMPLATE).render(blocks=blocks, even=summary.EVEN)


def goal_table(everything: list[tuple[str, Goal]]) -> list[Block]:
    """Returns every goal with its value."""
    if not everything:
        return [Text("None of the goals concerns what was run.")]
    heads = ["goal", "contender", "link", "page", "", "value", "goal", ""]
    rows = [
        Row(
            [goal.what, goal.contender, goal.link, goal.page, goal.scheme, f"{goal.value:.3f}", f"≤ {goal.bound:g}",
             _verdict(goal)],
            looks=_verdict(goal),
        )
        for _, goal in sorted(everything, key=lambda pair: (pair[1].met, pair[1].what))
    ]  # fmt: skip
    met = sum(goal.met for _, goal in everything)
    about = f"{met} of {len(everything)} met. Ratios of medians of one run; “never slower” allows 2 % of chance."
    table = Table(heads, rows, words=(0, 1, 2, 3, 4, 7))
    return [Text(about), Details("All goals", [table], is_open=True)]


def _verdict(goal: Goal) -> str:
    return "met" if goal.met else "missed"


def _provenance(found: Found) -> Notes:
    lines = [
        ("", f"{name}: {text['when']}, {text['repeats']} loads of each kind, seed {text['seed']}")
        for name, (text, _) in found.items()
    ]
    absent = {name: reason for text, _ in found.values() for name, reason in text["absent"].items()}
    lines += [("", f"{name} took no part: {reason}") for name, reason in absent.items()]
    lines += [("not run:", error[-300:]) for text, _ in found.values() for error in text["errors"]]
    return Notes(lines)
