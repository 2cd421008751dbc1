"""The front page: its table is that of the committed results, and its commands are those of the guide."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import pytest

from harness.artifacts import REPOSITORY
from harness.scripts import load_tool

readme = load_tool("readme")

PAGE = readme.README.read_text()
GUIDE = [REPOSITORY / "docs" / "src" / f"quick-start-{name}.md" for name in ("pair", "one-box")]
QUICK_STARTS = re.compile(r"^## (A pair|One box) in five minutes\n(.*?)(?=^## )", re.M | re.S)
BLOCK = re.compile(r"^```(?:sh|yaml)\n(.*?)^```", re.M | re.S)


def results(**changes: Any) -> dict[str, dict[str, Any]]:
    """The committed results, with changes to the first row of the table."""
    found = deepcopy(readme.committed())
    found[readme.TABLE]["rows"][0] |= changes
    return found


def test_table_and_picture_are_those_of_the_committed_results() -> None:
    assert readme.rewritten(PAGE, results()) == PAGE
    assert (REPOSITORY / results()[readme.STRIP]["picture"]).stat().st_size < 300_000


def test_other_results_make_another_page() -> None:
    assert readme.rewritten(PAGE, results(direct_ms=123_400)) != PAGE
    film = results()
    film[readme.STRIP]["shown"][0]["load_ms"] += 1000
    assert readme.rewritten(PAGE, film) != PAGE


def test_a_page_without_the_comments_is_refused() -> None:
    with pytest.raises(ValueError, match="front-page: begin"):
        readme.rewritten("# Longhaul\n", results())


@pytest.mark.parametrize(
    ("edge_ms", "pair_ms", "cells"),
    [
        (7000, 4000, "10.0 s | 0.70 | 0.40"),
        (10_200, 10_300, "10.0 s | 1.02 | **1.03**"),
        (None, 4000, "10.0 s | - | 0.40"),
    ],
)
def test_ways_are_parts_of_the_direct_time_and_bold_where_slower(edge_ms: int | None, pair_ms: int, cells: str) -> None:
    row = results(scheme="https", direct_ms=10_000, edge_ms=edge_ms, pair_ms=pair_ms)[readme.TABLE]["rows"][0]
    *_, line = readme.table([row])
    assert cells in line
    assert line.endswith("| - | - | - |"), "there is no row over http"


def test_the_front_page_is_short_and_types_what_the_guide_types() -> None:
    assert len(PAGE.splitlines()) <= 150
    typed = {line for page in GUIDE for line in page.read_text().splitlines()}
    blocks = [block for part in QUICK_STARTS.finditer(PAGE) for block in BLOCK.findall(part[2])]
    assert len(blocks) == 4
    assert {line for block in blocks for line in block.splitlines()} <= typed
