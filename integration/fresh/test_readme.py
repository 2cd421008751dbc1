"""The tables and the picture of every page that has some match the committed results."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from harness.host.artifacts import REPOSITORY
from harness.host.scripts import load_tool

readme = load_tool("readme")
front_page, experiments = readme.front_page, readme.experiments

PAGE = readme.README.read_text()


def results(**changes: Any) -> dict[str, dict[str, Any]]:
    """The committed results, with changes to the first row of the table."""
    found = deepcopy(readme.committed())
    found["front-page"]["rows"][0] |= changes
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
    ("edge_ms", "first_ms", "cells"),
    [
        (7000, 6000, "10.0 s | - | 0.70 | 0.60 | 0.40 | 0.30"),
        (10_200, 10_300, "10.0 s | - | 1.02 | **1.03** | 0.40 | 0.30"),
        (None, 6000, "10.0 s | - | - | 0.60 | 0.40 | 0.30"),
    ],
)
def test_ways_are_parts_of_the_direct_time_and_bold_where_slower(
    edge_ms: int | None, first_ms: int, cells: str
) -> None:
    pair = {"pair_first_ms": first_ms, "pair_second_ms": 4000, "pair_listed_ms": 3000}
    times = {"direct_ms": 10_000, "edge_ms": edge_ms, **pair, "ideal_ms": 2500, "floor_ms": 1000}
    row = results(scheme="https", best_peer=None, **times)["front-page"]["rows"][0]
    *_, line = front_page.table([row])
    assert cells in line
    assert line.endswith("| - | - | - | - | - | - | 2.5 s | 1.0 s |"), "there is no row over http"


def test_the_best_peer_is_a_part_of_the_direct_time_and_named() -> None:
    rows = results(scheme="https", direct_ms=10_000, best_peer={"name": "Squid", "ms": 8000})["front-page"]["rows"][:1]
    assert "10.0 s | 0.80 |" in front_page.table(rows)[-1]
    assert front_page.peers(rows) == "The best peer: Squid."


def test_the_tables_of_the_test_bed_are_those_of_the_committed_results() -> None:
    page = readme.BED.read_text()
    assert readme.rewritten(page, results(), readme.BED) == page
    for block, kind in (("today", "figures"), ("bytes", "figures"), ("one-flight", "own")):
        others = results()
        others[block][kind] = dict.fromkeys(others[block][kind], 7)
        assert readme.rewritten(page, others, readme.BED) != page


def test_the_page_of_sizes_is_that_of_the_committed_results() -> None:
    page = readme.SIZING.read_text()
    assert readme.rewritten(page, results(), readme.SIZING) == page
    others = results()
    others["memory"]["small-box"]["figures"]["ground_rss_mib"] += 10
    assert readme.rewritten(page, others, readme.SIZING) != page
    del others["memory"]["edge"]["figures"]["idle_connection_kib"]
    with pytest.raises(ValueError, match="make bench ONLY=edge"):
        readme.rewritten(page, others, readme.SIZING)


def test_the_page_of_experiments_has_each_experiment_that_is_kept() -> None:
    page = readme.EXPERIMENTS.read_text()
    assert readme.rewritten(page, results(), readme.EXPERIMENTS) == page
    kept = {path.stem for path in (readme.RESULTS / "experiments").glob("*.json")}
    assert {line.removeprefix("## ").strip("`") for line in page.splitlines() if line.startswith("## ")} == kept


def test_a_contender_has_a_column_and_each_visit_of_a_page_a_row() -> None:
    figures = {
        "rural_lte_ten_t_mobile_http_direct_load_ms": 2000,
        "rural_lte_ten_t_mobile_http_longhaul_http_4_ratio_to_direct": 0.5,
        "rural_lte_ten_t_mobile_http_squid_explicit_ratio_to_direct": 1.1,
        "rural_lte_ten_t_mobile_http_direct_warm_load_ms": 700,
        "rural_lte_ten_t_mobile_http_longhaul_http_4_warm_ratio_to_direct": 1.0,
    }
    assert experiments.ratio_table(experiments.ratios({"figures": figures})) == [
        "| link | page | | direct, s | squid-explicit | longhaul-http-4 |",
        "|---|---|---|---|---|---|",
        "| rural-lte | ten-t-mobile | http | 2.0 | **1.10** | 0.50 |",
        "| rural-lte | ten-t-mobile, again | http | 0.7 |  | 1.00 |",
    ]
    with pytest.raises(ValueError, match="begins with no link"):
        experiments.ratios({"figures": {"moon_cnn_http_edge_ratio_to_direct": 1.0}})


def test_a_table_without_its_figures_is_refused() -> None:
    others = results()
    del others["today"]["figures"]["geo_cnn_http_longhaul_pair_ratio_to_direct"]
    with pytest.raises(ValueError, match="geo_cnn_http_longhaul_pair_ratio_to_direct"):
        readme.rewritten(readme.BED.read_text(), others, readme.BED)


def test_the_front_page_is_short() -> None:
    assert len(PAGE.splitlines()) <= 150
