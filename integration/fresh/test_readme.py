"""The tables and the picture of the front page and of the test bed's page match the committed results."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from harness.artifacts import REPOSITORY
from harness.scripts import load_tool

readme = load_tool("readme")

PAGE = readme.README.read_text()


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
        (7000, 4000, "10.0 s | - | 0.70 | 0.40"),
        (10_200, 10_300, "10.0 s | - | 1.02 | **1.03**"),
        (None, 4000, "10.0 s | - | - | 0.40"),
    ],
)
def test_ways_are_parts_of_the_direct_time_and_bold_where_slower(edge_ms: int | None, pair_ms: int, cells: str) -> None:
    times = {"direct_ms": 10_000, "edge_ms": edge_ms, "pair_ms": pair_ms, "ideal_ms": 2500, "floor_ms": 1000}
    row = results(scheme="https", best_peer=None, **times)[readme.TABLE]["rows"][0]
    *_, line = readme.table([row])
    assert cells in line
    assert line.endswith("| - | - | - | - | 2.5 s | 1.0 s |"), "there is no row over http"


def test_the_best_peer_is_a_part_of_the_direct_time_and_named() -> None:
    rows = results(scheme="https", direct_ms=10_000, best_peer={"name": "Squid", "ms": 8000})[readme.TABLE]["rows"][:1]
    assert "10.0 s | 0.80 |" in readme.table(rows)[-1]
    assert readme.peers(rows) == "The best peer: Squid."


def test_the_tables_of_the_test_bed_are_those_of_the_committed_results() -> None:
    page = readme.BED.read_text()
    assert readme.rewritten(page, results(), readme.BED) == page
    for block in (readme.TODAY, readme.BYTES):
        others = results()
        others[block]["figures"] = dict.fromkeys(others[block]["figures"], 7)
        assert readme.rewritten(page, others, readme.BED) != page


def test_a_table_without_its_figures_is_refused() -> None:
    others = results()
    del others[readme.TODAY]["figures"]["geo_cnn_http_longhaul_pair_ratio_to_direct"]
    with pytest.raises(ValueError, match="geo_cnn_http_longhaul_pair_ratio_to_direct"):
        readme.rewritten(readme.BED.read_text(), others, readme.BED)


def test_the_front_page_is_short() -> None:
    assert len(PAGE.splitlines()) <= 150
