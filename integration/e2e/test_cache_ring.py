"""`cache.parent` as a list: each URL has a node of its own, and no request fails when a node dies."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from harness.boxes.desk import IMG, Desk
from harness.boxes.pep import Pep, command
from harness.boxes.ring import Ring, lose_a_node, ring_of, urls
from harness.clients.commands import Curl
from harness.host.waiting import wait_for


@pytest.fixture
def ring(desk: Desk) -> Iterator[Ring]:
    with ring_of(desk, 3) as ring:
        yield ring


def status(pep: Pep) -> dict[str, Any]:
    """Returns the report of `longhaul status --json`."""
    return json.loads(command("status", "--state", pep.state, "--json").stdout)


def up(pep: Pep) -> list[bool]:
    """Returns for each node whether it responds, in the order of the addresses."""
    return [node["up"] for node in status(pep)["parents"]]


def test_a_url_keeps_its_node_and_no_request_fails_when_one_dies(ring: Ring) -> None:
    with Pep(ring.desk.write(**ring.changes), ring.desk.folder) as pep:
        wait_for("all nodes respond", lambda: up(pep) == [True] * 3, 10)
        outcome = lose_a_node(ring, 300, lambda: up(pep).count(False) == 1, lambda: all(up(pep)))
    assert outcome.same_share == 1
    assert all(0.2 <= share <= 0.5 for share in outcome.shares), outcome
    assert outcome.failed == 0, outcome
    assert outcome.shares[0] <= outcome.moved_share <= 0.45, outcome
    assert outcome.returned_share == 1, outcome


def test_status_warns_of_a_dead_node_and_calls_it_a_problem_if_all_are_dead(ring: Ring) -> None:
    with Pep(ring.desk.write(**ring.changes), ring.desk.folder) as pep:
        wait_for("all nodes respond", lambda: up(pep) == [True] * 3, 10)
        dead, *others = ring.nodes
        dead.kill()
        words = f"{dead.address} (`cache.parent`) does not respond; the other proxies serve its URLs"
        report = wait_for("a warning", lambda: (seen := status(pep))["warnings"] and seen, 10, 0.1)
        assert (report["warnings"], report["problems"]) == ([words], [])
        shown = command("status", "--state", pep.state)
        assert shown.returncode == 0
        assert f"warning: {words}" in shown.stdout
        assert f"{dead.address} DOWN" in shown.stdout
        assert f"{others[0].address} up" in shown.stdout
        # A node that hangs accepts connections, but does not respond.
        for node in others:
            node.signal(signal.SIGSTOP)
        report = wait_for("a problem", lambda: (seen := status(pep))["problems"] and seen, 10, 0.1)
        assert report["problems"] == ["no proxy of `cache.parent` responds: requests over http fail"]
        assert report["warnings"] == []
        for node in others:
            node.kill()
        answer = Curl(ring.desk.folder).get(f"http://127.0.0.1:{ring.desk.http}/a.png", "-H", f"Host: {IMG}")
        assert answer.status == 502
        assert b"no connection to" in answer.body
        others[0].start()
        wait_for("one is back", lambda: ring.get(urls(10, "back")) == {200: 10}, 10)
        assert "starting it again" not in pep.output()
