"""The plan of `field`, what loads say about a ratio, and the figures that are made of them."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.catalogue import APART
from experiments.field.scenarios import (
    CUBIC,
    DIRECT,
    FIRST_LINKS,
    LINKS,
    NAME,
    PAIR,
    SCENARIOS,
    SCHEMES,
    Measures,
    groups,
    is_side_by_side,
    loads,
    most_loads,
)
from experiments.field.summary import cells, summed
from experiments.field.verdicts import Ratio, Verdict, p95, ratio
from experiments.plan import Group, matching
from experiments.specials.field import Loads, hidden
from harness.lab.links import CAPACITY, link
from harness.lab.neighbours import FAIR_QUEUE
from harness.lab.peers import SPLIT_TCP, WIREGUARD

STEADY = [5.0, 5.1, 4.9, 5.0, 5.05]


def beds(repeats: int = 5) -> list[Group]:
    """Returns the beds in the order in which a run starts them."""
    return sorted(groups(repeats), key=lambda one: (one.rank, -one.expected_total_ms()))


def test_each_scenario_has_a_bed_on_each_link_and_no_two_have_the_same_name() -> None:
    names = [one.bed for one in beds()]
    assert len(set(names)) == len(names) == len(LINKS) * len(SCENARIOS)
    assert {one.experiment for one in beds()} == {NAME}
    assert APART[NAME].groups is groups


def test_what_readers_ask_for_first_is_measured_first() -> None:
    first = [(one.link_name, one.scenario) for one in beds()[:6]]
    wanted = ("idle", "four-https-downloads", "users-15")
    assert set(first) == {(name, scenario) for name in FIRST_LINKS for scenario in wanted}
    links = [one.link_name for one in beds()]
    assert set(links[: len(links) // 2]) == set(FIRST_LINKS)


def test_a_whole_run_has_five_loads_and_more_where_they_say_nothing() -> None:
    for one in SCENARIOS.values():
        assert loads(one, 1) == most_loads(one, 1) == 1, "a taste"
        if one.measures is Measures.PAGE:
            assert loads(one, 3) == 5
            assert most_loads(one, 3) == 10
        else:
            assert loads(one, 3) == most_loads(one, 3)


def test_ways_take_turns_where_they_would_fill_the_machine() -> None:
    busy, alone = (SCENARIOS["users-15"], SCENARIOS["one-upload"]), SCENARIOS["idle"]
    for one in busy:
        assert [is_side_by_side(one, link(name)) for name in LINKS] == [True, False, False, False]
    assert [is_side_by_side(alone, link(name)) for name in LINKS] == [True, True, True, False]


def test_a_part_of_the_beds_has_a_pattern() -> None:
    assert {one.scenario for one in matching(groups(5), "field geo users-*")} == {"users-5", "users-15"}
    assert matching(groups(5), "*") == groups(5)
    assert matching(groups(5), "geo") == []


def test_nothing_runs_beside_a_bed_of_several_users() -> None:
    alone = {one.scenario for one in groups(5) if one.weight == CAPACITY and one.link_name == "geo"}
    assert alone == {one.name for one in SCENARIOS.values() if one.streams or one.users}


def test_a_wrong_link_is_stated_and_not_emulated() -> None:
    ship = link("maritime")
    assert SCENARIOS["rates-3x"].stated(ship) == {"rtt": "700ms", "down": "6mbit", "up": "1500kbit"}
    assert SCENARIOS["rates-third"].stated(ship) == {"rtt": "700ms", "down": "667kbit", "up": "167kbit"}
    assert SCENARIOS["rates-3x"].emulated(ship) == {}
    assert SCENARIOS["idle"].stated(ship) == ship.setting


def test_loss_is_that_of_both_directions_and_low_orbit_has_hand_overs() -> None:
    assert SCENARIOS["loss-1"].emulated(link("geo")) == {"down.random_loss": "0.01", "up.random_loss": "0.01"}
    low_orbit = SCENARIOS["loss-1"].emulated(link("leo"))
    assert "every_s = 15" in low_orbit.pop("handover")
    assert low_orbit == SCENARIOS["loss-1"].emulated(link("geo"))


def test_a_fair_queue_takes_part_where_users_share_a_link_and_cubic_where_packets_are_lost() -> None:
    ship = link("maritime")
    assert SCENARIOS["idle"].ways(ship) == (DIRECT, CUBIC, WIREGUARD, SPLIT_TCP, PAIR)
    assert SCENARIOS["users-5"].ways(ship) == (DIRECT, FAIR_QUEUE, WIREGUARD, SPLIT_TCP, PAIR)
    assert SCENARIOS["users-5"].ways(link("geo")) == (DIRECT, FAIR_QUEUE, PAIR), "each way would take 150 s more"
    assert SCENARIOS["users-15"].ways(ship) == (DIRECT, FAIR_QUEUE, PAIR)
    assert SCENARIOS["browser-15"].ways(ship) == (DIRECT, FAIR_QUEUE, PAIR)
    assert SCENARIOS["one-http-download"].ways(ship) == (DIRECT, FAIR_QUEUE, PAIR)
    assert SCENARIOS["loss-3"].ways(ship) == (DIRECT, CUBIC, PAIR)
    assert SCENARIOS["outage-20s"].ways(ship) == (DIRECT, PAIR)


def test_a_ratio_has_the_spread_of_loads_drawn_again_and_is_the_same_each_time() -> None:
    found = ratio(STEADY, [10.0, 10.1, 9.9, 10.0, 10.05])
    assert found == ratio(STEADY, [10.0, 10.1, 9.9, 10.0, 10.05])
    assert found
    assert found.value == 0.5
    assert 0.48 < found.low < 0.5 < found.high < 0.52
    assert ratio([], STEADY) is None
    assert ratio(STEADY, []) is None


@pytest.mark.parametrize(
    ("low", "high", "count", "verdict"),
    [
        (0.5, 0.9, 5, Verdict.NOT_SLOWER),
        (1.0, 1.02, 5, Verdict.NOT_SLOWER),
        (1.021, 1.3, 5, Verdict.SLOWER),
        (0.9, 1.1, 5, Verdict.UNCLEAR),
        (0.5, 0.5, 2, Verdict.UNCLEAR),
    ],
)
def test_a_spread_on_both_sides_of_the_bound_hides_the_verdict(
    low: float, high: float, count: int, verdict: Verdict
) -> None:
    assert Ratio((low + high) / 2, low, high, count).verdict is verdict


def test_more_loads_are_made_where_the_spread_hides_the_verdict_about_the_pair() -> None:
    direct = Loads([5.0, 5.1, 4.9, 5.0, 5.05])
    assert hidden({("http", DIRECT): direct, ("http", PAIR): Loads([3.0, 9.0, 5.1, 4.0, 6.0])}, "http")
    assert not hidden({("http", DIRECT): direct, ("http", PAIR): Loads([3.0, 3.1, 2.9, 3.0, 3.0])}, "http")
    assert not hidden({("http", DIRECT): direct, ("http", PAIR): Loads(failed=5)}, "http"), "it would fail again"


def test_p95_is_the_time_that_one_load_of_twenty_exceeds() -> None:
    assert p95([float(number) for number in range(101)]) == 95
    assert p95([3.0]) == 3


def made(
    link_name: str, scenario: str, way: str, seconds: list[float], *, scheme: str = "https", failed: int = 0
) -> dict:
    """Returns the loads of one way, as a bed returns them."""
    return {
        "link": link_name, "scenario": scenario, "scheme": scheme, "way": way, "seconds": seconds, "failed": failed,
        "dropped": 0,
    }  # fmt: skip


def test_cells_have_the_order_of_tables_and_a_verdict_beside_direct() -> None:
    found = cells([
        made("geo", "idle", PAIR, [6.0] * 5),
        made("geo", "idle", DIRECT, [5.0] * 5, failed=1),
        made("geo", "idle", CUBIC, []),
        made("maritime", "idle", DIRECT, [5.0] * 5),
    ])  # fmt: skip
    assert [(one.link, one.way) for one in found] == [
        ("maritime", DIRECT), ("geo", DIRECT), ("geo", CUBIC), ("geo", PAIR),
    ]  # fmt: skip
    assert [one.verdict for one in found] == ["", "", "failed", "slower"]
    assert (found[1].failed, found[2].seconds, found[3].ratio, found[3].worst_ratio) == (1, None, 1.2, 1.2)


def test_a_crowd_has_two_cells() -> None:
    found = cells([made("maritime", "users-15", way, [1.0, 2.0, 9.0]) for way in (DIRECT, PAIR)])
    assert [(one.way, one.what) for one in found] == [
        (DIRECT, "page, p50"), (DIRECT, "page, p95"), (PAIR, "page, p50"), (PAIR, "page, p95"),
    ]  # fmt: skip


def whole(ours: float) -> dict[str, Any]:
    """Returns the details of a run on a ship's link, whose pair takes this part of the direct time."""
    direct_s = {"idle": 5.0, "four-https-downloads": 10.0, "users-15": 8.0, "outage-40s": 2.0}
    return {
        "loads": [
            made("maritime", scenario, way, [seconds * part] * 5, scheme=scheme)
            for scheme in SCHEMES
            for way, part in ((DIRECT, 1.0), (PAIR, ours))
            for scenario, seconds in direct_s.items()
        ]
    }


def test_figures_and_goals_are_those_of_the_cells() -> None:
    found = summed(whole(0.5))
    assert found["figures"] == {
        "ship_15_users_p50": 0.5,
        "ship_15_users_p95": 0.5,
        "outage_40s_back_vs_direct": 0.5,
        "http_page_beside_4_downloads_vs_idle_maritime": 2.0,
        "https_page_beside_4_downloads_vs_idle_maritime": 2.0,
        "cells_slower_than_direct_maritime": 0,
        "cells_unclear_maritime": 0,
        "cells_maritime": 10,
    }
    assert [(goal["what"], goal["link"], goal["value"] <= goal["bound"]) for goal in found["goals"]] == [
        ("ship_15_users_p50", "maritime", True),
        ("ship_15_users_p95", "maritime", True),
        ("outage_40s_back_vs_direct", "maritime", True),
        ("https_page_beside_4_downloads_vs_idle", "maritime", False),
        ("cells_slower_than_direct", "maritime", True),
    ]
    assert summed(whole(1.1))["figures"]["cells_slower_than_direct_maritime"] == 10


def test_a_pair_that_is_slower_than_a_peer_is_counted() -> None:
    times = ((DIRECT, 9.0), (FAIR_QUEUE, 6.0), (WIREGUARD, 9.2))
    loads = [
        made("maritime", scenario, way, [seconds] * 5)
        for scenario in ("one-upload", "four-http-downloads")
        for way, seconds in (*times, (PAIR, 7.0 if scenario == "one-upload" else 5.0))
    ]
    found = summed({"loads": loads})
    assert found["figures"]["cells_slower_than_fair_queue_maritime"] == 1
    assert found["figures"]["cells_slower_than_wireguard_maritime"] == 0
    assert "cells_slower_than_split_tcp_maritime" not in found["figures"], "it did not run"
    assert {goal["what"]: goal["value"] for goal in found["goals"]}["cells_slower_than_fair_queue"] == 1


def test_what_was_not_measured_has_no_figure_and_no_goal() -> None:
    found = summed({})
    assert (found["cells"], found["figures"], found["goals"]) == ([], {}, [])
    only_http = {"loads": [one for one in whole(0.5)["loads"] if one["scheme"] == "http"]}
    assert "ship_15_users_p50" not in summed(only_http)["figures"]


def test_a_summary_can_be_made_again_when_more_beds_have_run() -> None:
    first = summed({"loads": whole(0.5)["loads"][:4]})
    assert summed(first | {"loads": whole(0.5)["loads"]}) == summed(whole(0.5))
