"""The report as HTML: names are always text, whatever they contain, and each kind of block is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from experiments.catalogue import APART, EXPERIMENTS
from experiments.goals import Goal
from experiments.report.blocks import (
    Bad,
    Block,
    Change,
    Details,
    Gain,
    Gains,
    Heading,
    Key,
    Notes,
    Plot,
    Plots,
    Row,
    Table,
    Text,
)  # fmt: skip
from experiments.report.document import goal_table, html_of
from experiments.report.sections import PAPERS_FIRST
from experiments.report.special import SPECIAL_SECTIONS
from harness.results.html import template

NAME = "<i>&"
ESCAPED = "&lt;i&gt;&amp;"
SVG = Markup("<svg></svg>")


@pytest.mark.parametrize(
    "block",
    [
        Heading(NAME),
        Text(NAME),
        Text("", lead=NAME),
        Notes([("", NAME)]),
        Table([NAME], [Row(["x"])]),
        Table(["x"], [Row([NAME])]),
        Table(["x"], [Row([Bad(NAME)])]),
        Table(["x"], [Row([Bad("1", NAME)])]),
        Plot(SVG, NAME),
        Plots([Plot(SVG, NAME)]),
        Gains(NAME, []),
        Gains("ours", [Gain(NAME, [])]),
        Gains("ours", [Gain("geo", [Change(-0.5, NAME), Change(0.5, "cnn")])]),
        Key([Text(NAME)]),
        Details(NAME, []),
    ],
    ids=lambda block: block.kind,
)
def test_a_name_is_escaped(block: Block) -> None:
    page = html_of([block])
    assert ESCAPED in page
    assert NAME not in page


def test_a_page_and_a_contender_of_a_goal_come_out_escaped() -> None:
    goal = Goal("never slower", "<i>squid</i>", "geo", "<b>cnn</b>", "http", 0.9, 1.0)
    page = html_of(goal_table([("today", goal)]))
    assert "&lt;b&gt;cnn&lt;/b&gt;" in page
    assert "&lt;i&gt;squid&lt;/i&gt;" in page
    assert "<b>cnn" not in page
    assert "<i>squid" not in page


ROWS = {
    "mobility": {
        "case": NAME, "title": NAME, "how": NAME, "journeys": 3, "broken": 2, "absent": [NAME], "load_ms": [9],
    },
    "gprs": {
        "sender": NAME, "queueing_p50_ms": 1, "queueing_max_ms": 2,
        "second_first_byte_s": 1, "first_s": 1, "second_s": 2,
    },
    "one-flight": {"cache": "cold", "link": NAME, "contender": NAME, "page": NAME, "load_ms": [9]},
    "quic": {"page": NAME, "way": "pass", "load_ms": 9, "over_http3": 0.5, "problems": [NAME]},
}  # fmt: skip
"""A row of each experiment that is more than page loads."""


@pytest.mark.parametrize("experiment", ROWS)
def test_names_in_special_sections_come_out_escaped(experiment: str) -> None:
    page = html_of(SPECIAL_SECTIONS[experiment]({"details": {"rows": [ROWS[experiment]]}}))
    assert ESCAPED in page
    assert NAME not in page


def test_a_cell_of_the_links_as_they_are_comes_out_escaped_and_bad_where_it_is_slower() -> None:
    cell = {
        "link": NAME, "words": NAME, "scheme": "http", "what": "page", "way": "quick-start", "loads": 5, "failed": 0,
        "seconds": 1.5, "worst_s": 2.0, "ratio": 1.2, "low": 1.1, "high": 1.3, "verdict": "slower",
    }  # fmt: skip
    page = html_of(SPECIAL_SECTIONS["field"]({"details": {"cells": [cell, cell | {"ratio": None, "seconds": None}]}}))
    assert ESCAPED in page
    assert NAME not in page
    assert "1.10–1.30" in page


def test_every_experiment_has_a_section() -> None:
    assert set(PAPERS_FIRST) == {*EXPERIMENTS, *APART, "quick"}


def test_a_plot_is_drawn_as_it_is() -> None:
    assert "<figure><svg></svg><figcaption>x" in html_of([Plot(SVG, "x")])


def test_gains_say_how_much_sooner_and_later() -> None:
    page = html_of([Gains("ours", [Gain("geo", [Change(-0.5, "cnn"), Change(0.25, "yahoo")], (1.2, 1.4))])])
    text = " ".join(Markup(page[page.index("<li>") :]).striptags().split())
    assert text == "geo: from 50 % sooner (cnn) to 25 % later (yahoo); 1.2 to 1.4 times the ideal."


def test_a_value_that_a_template_lacks_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "page").write_text("{{ missing }}")
    with pytest.raises(UndefinedError):
        template(tmp_path / "page").render()
