"""Changes under load: no request is lost, no stream is cut, and a broken configuration changes nothing."""

from __future__ import annotations

from harness.boxes.desk import Desk
from harness.boxes.reloads import Box, twenty_changes
from harness.host.waiting import wait_for


def test_twenty_changes_under_load_lose_no_request_and_cut_no_stream(desk: Desk) -> None:
    with Box(desk).running() as box:
        listeners = box.listeners()
        with box.load().running() as load:
            twenty_changes(box)
        assert (box.changes, box.refusals) == (20, 5)
        assert load.failed == []
        assert load.pages > 200, "it was a load"
        assert load.downloads >= 3, "streams were under way throughout"
        assert box.listeners() == listeners, "no filter chain changed, so none drained"
        draining = box.pep.admin("/stats?filter=total_filter_chains_draining")
        assert draining.strip() == "listener_manager.total_filter_chains_draining: 0"


def test_a_change_of_a_filter_chain_under_load_loses_no_request_either(desk: Desk) -> None:
    with Box(desk).running() as box:
        listeners = box.listeners()
        with box.load().running() as load:
            box.write(compress={"br": 4, "gzip": 4})
            before = load.pages
            wait_for("pages after the change", lambda: load.pages > before + 100 or load.failed, timeout_s=60)
        assert box.listeners() != listeners
        assert load.failed == [], "the old chain's connections end when their answers have"
        assert load.downloads >= 3
