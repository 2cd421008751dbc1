"""Connections that pass unread, through a box and through pairs: every byte, and the end that the peer made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.tunnels import TunnelBed, tunnel_bed

BEDS = {
    "edge": ("edge", "rural-lte"),
    # A warm connection each.
    "pair": ("pair", "maritime"),
    # A stream of the pipe each.
    "streams": ("streams", "rural-lte"),
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
    """Two downloads at the same time over TLS, and one over bare TCP. None can be faster than the link."""
    size = 400_000
    kinds: list[dict[str, Any]] = [{"tls": True}, {"tls": True}]
    # On the ship the end of bare TCP comes 10 s after the last byte.
    kinds += [] if bed.way == "pair" else [{"port": 80}]
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
