"""Connections that pass unread, through a box and through pairs: every byte, and the end that the peer made."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.host.waiting import quickest
from harness.lab.tunnels import SPEAKS_FIRST, UNDERSCORED, TunnelBed, tunnel_bed

BEDS = {
    "edge": ("edge", "rural-lte"),
    # A warm connection each.
    "pair": ("pair", "geo"),
    # A stream of the pipe each.
    "streams": ("pair", "rural-lte"),
}


@pytest.fixture(scope="module", params=BEDS)
def bed(
    request: pytest.FixtureRequest,
    root_bed: None,  # noqa: ARG001 - order of set-up
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[TunnelBed]:
    way, profile = BEDS[request.param]
    with tunnel_bed(tmp_path_factory.mktemp(way), way, profile) as running:
        yield running


def downloads(bed: TunnelBed, **ask: Any) -> list[dict[str, Any]]:
    """Two downloads at the same time over TLS, to two names, and one over bare TCP. All are as slow as the link."""
    size = 400_000
    kinds: list[dict[str, Any]] = [{"tls": True}, {"tls": True, "name": UNDERSCORED}]
    # On the ship the end of bare TCP comes 10 s after the last byte.
    kinds += [] if bed.rtt_s > 0.5 else [{"port": 80}]
    started = [bed.start(do="download", size=size, timeout=60, **kind, **ask) for kind in kinds]
    seen = [bed.finish(one) for one in started]
    assert [(one.get("bytes"), one.get("right")) for one in seen] == [(size, True)] * len(kinds), seen
    return seen


def test_a_download_whose_server_closes_behind_it_is_whole_and_ends_cleanly(bed: TunnelBed) -> None:
    seen = downloads(bed, end="close")
    assert [(one["end"], one["told"]) for one in seen] == [("fin", True), ("fin", True), ("fin", None)][: len(seen)]


def test_a_download_whose_server_resets_behind_it_is_whole_and_tls_does_not_say_that_it_ended(bed: TunnelBed) -> None:
    seen = downloads(bed, end="reset")
    # Envoy cannot send all bytes and a reset behind them. In TLS the missing close_notify tells the end.
    assert [(one["end"], one["told"]) for one in seen] == [("fin", False), ("fin", False), ("fin", None)][: len(seen)]


def test_a_client_that_pauses_or_is_slower_than_the_link_gets_every_byte(bed: TunnelBed) -> None:
    # The server ends while its bytes wait for the client. A stream of a pair ends some seconds later, and drops what
    # waits then.
    waits: list[dict[str, Any]] = [
        wait | kind for wait in ({"pause": 8}, {"takes": 40_000}) for kind in ({}, {"tls": True})
    ]
    started = [bed.start(do="download", end="close", size=400_000, timeout=60, **wait) for wait in waits]
    seen = [bed.finish(one) for one in started]
    assert [(one.get("bytes"), one.get("right"), one.get("end")) for one in seen] == [(400_000, True, "fin")] * 4, seen


@pytest.mark.long
def test_a_client_of_an_edge_may_pause_for_longer_than_an_outage(
    root_bed: None,  # noqa: ARG001 - order of set-up
    folder: Path,
) -> None:
    with tunnel_bed(folder, "edge", "rural-lte") as bed:
        # An end of a pair gives the other one up after 43 s on this link.
        seen = bed.ask(do="download", end="close", tls=True, size=3_000_000, pause=55, timeout=120)
    assert (seen["bytes"], seen["right"], seen["told"]) == (3_000_000, True, True), seen


def test_a_server_that_speaks_first_is_heard_soon(bed: TunnelBed) -> None:
    # At a remote the clients are near. At an edge they are behind the link, and so is their first packet.
    def heard_s(port: int) -> float:
        heard = bed.ask(do="banner", address=SPEAKS_FIRST, port=port)
        assert heard["right"], heard
        return heard["seconds"]

    for port, within_s in ((443, 1 + 5 * bed.rtt_s), (80, 5 + 3 * bed.rtt_s)):
        assert quickest(partial(heard_s, port), within_s) < within_s


def test_a_websocket_ends_soon_after_its_server_has_ended_it(bed: TunnelBed) -> None:
    def end_s() -> float:
        seen = bed.ask(do="ws_end", kind="ws", port=80)
        assert seen["end"] == "fin", seen
        return seen["seconds"]

    # The client hears the last byte at once. Envoy gives it some time before the end, so that no reset takes that byte.
    within_s = 1.0 + (2 if bed.way == "edge" else 1) * bed.rtt_s
    assert quickest(end_s, within_s) < within_s


IDLE_S = 400
KINDS: dict[str, dict[str, Any]] = {
    "tls": {"tls": True},
    "tls without a name": {"tls": True, "name": None},
    "bare, port 443": {},
    "bare, port 80": {"port": 80},
    "websocket": {"kind": "ws", "port": 80},
    "events": {"kind": "sse", "port": 80},
}


@pytest.mark.long
@pytest.mark.parametrize(("way", "profile"), [("edge", "maritime"), ("pair", "maritime"), ("pair", "rural-lte")])
def test_an_idle_connection_lives_whatever_it_carries(
    way: str,
    profile: str,
    root_bed: None,  # noqa: ARG001 - order of set-up
    folder: Path,
) -> None:
    with tunnel_bed(folder, way, profile) as bed:
        started = {kind: bed.start(do="idle", idle=IDLE_S, timeout=IDLE_S + 60, **ask) for kind, ask in KINDS.items()}
        seen = {kind: bed.finish(client) for kind, client in started.items()}
    assert {kind: one["survived"] for kind, one in seen.items()} == dict.fromkeys(KINDS, True), seen
