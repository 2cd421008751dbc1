"""The tables and the picture of links as they are, made of cells: none reports what its loads do not say."""

from __future__ import annotations

from typing import Any

from harness.host.scripts import load_tool

field = load_tool("readme").field
users = load_tool("pictures").users


def cell(way: str, seconds: float | None = 5.0, **more: Any) -> dict[str, Any]:
    """Returns a cell of a ship's idle link."""
    ours = {"ratio": None, "low": None, "high": None, "worst_ratio": None, "verdict": ""}
    if way != "direct":
        ours = {"ratio": 0.5, "low": 0.45, "high": 0.55, "worst_ratio": 0.6, "verdict": "not slower"}
    return {
        "link": "maritime", "scenario": "idle", "words": "nobody else", "scheme": "https", "what": "page", "way": way,
        "loads": 5, "failed": 0, "seconds": seconds, "worst_s": seconds, **ours, **more,
    }  # fmt: skip


def run(*cells: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Returns kept results."""
    origin = {"commit": "0123abc", "date": "2026-11-29", "machine": "2 cores", "note": "other work ran", "beds_left": 0}
    return {**origin, "cells": list(cells), **more}


def last(*cells: dict[str, Any]) -> str:
    """Returns the last line of the table."""
    return field.cells_table(run(*cells))[-1]


def test_a_part_of_the_direct_time_stands_with_its_spread() -> None:
    assert last(cell("direct", 9.96), cell("quick-start")) == (
        "| ship | nobody else | https | 10.0 |  |  |  |  | 0.50 (0.45-0.55) | 0.60 |"
    )


def test_a_slower_cell_is_bold_and_one_that_is_hidden_has_no_figure() -> None:
    slower = cell("quick-start", ratio=1.2, low=1.1, high=1.3, verdict="slower", failed=1)
    assert "| **1.20** (1.10-1.30), 1 failed | 0.60 |" in last(cell("direct"), slower)
    hidden = last(cell("direct"), cell("quick-start", ratio=1.01, low=0.9, high=1.3, verdict="unclear", loads=10))
    assert hidden.endswith("| unclear, 10 loads |  |")
    failed = cell("quick-start", None, verdict="failed", ratio=None, failed=5)
    assert "**none of 5 ended**" in last(cell("direct"), failed)


def test_origins_with_cubic_and_peers_have_columns() -> None:
    ways = [cell(way) for way in ("direct", "direct-cubic", "fair-queue", "wireguard", "split-tcp", "quick-start")]
    assert last(*ways).count("0.50 (0.45-0.55)") == 5


def test_peers_stand_beside_a_pair_where_one_that_is_a_program_ran() -> None:
    ways = [cell(way, 5.0) for way in ("direct", "fair-queue", "wireguard", "quick-start")]
    assert field.peers_block(run(*ways)).splitlines()[-1] == (
        "| nobody else | https | 5.0 s | 5.0 s | 5.0 s |  | 5.0 s |"
    )
    assert field.peers_block(run(*ways[:2], ways[3])) == "No bed of this table has run yet."


def test_the_source_says_what_has_not_run_and_what_else_the_machine_did() -> None:
    said = field.source(run(cell("direct"), beds_left=3))
    assert "3 beds have not run." in said
    assert "2 cores, other work ran" in said
    assert "not run" not in field.source(run(cell("direct")))


def test_the_guide_has_seconds_and_no_words_of_statistics() -> None:
    hidden = cell("quick-start", scheme="http", verdict="unclear")
    found = field.ship_block(run(cell("direct", 9.0), cell("quick-start"), cell("direct", 8.0, scheme="http"), hidden))
    assert found.splitlines()[-1] == "| nobody else | 8.0 s |  | not decided | 9.0 s |  | 5.0 s |"


def test_a_table_without_cells_says_so() -> None:
    assert field.faults_block(run(cell("direct"))) == "No bed of this table has run yet."


def test_the_gain_of_fifteen_users_is_a_sentence_for_each_scheme() -> None:
    both = [
        cell(way, seconds, scenario="users-15", what=what)
        for way, seconds in (("direct", 9.0), ("quick-start", 4.0))
        for what in ("page, p50", "page, p95")
    ]
    [sentence] = field.gain_block(run(*both)).split("\n- ")
    assert "Over https" in sentence
    assert "at most 4.0 s, and 9.0 s without a pair" in sentence
    assert field.gain_block(run(*both[:3])) == ""


def test_slower_cells_are_named_for_each_link() -> None:
    slower = cell("quick-start", ratio=1.2, verdict="slower")
    hidden = cell("quick-start", scheme="http", verdict="unclear")
    assert field.verdicts_block(run(cell("direct"), slower, hidden)).splitlines()[2:] == [
        "| ship | 2 | 1: nobody else, https | 1 |"
    ]


def test_the_picture_has_a_bar_where_loads_decide_and_words_elsewhere() -> None:
    svg = users.draw(run(cell("direct", 9.0), cell("quick-start", verdict="unclear"))).svg()
    assert "9.0 s" in svg
    assert "the loads do not decide" in svg
    assert "5.0 s" not in svg.replace("5 s", "")
    assert svg.count("not measured") == 18
