"""A minute of constant load. `make soak` runs it for an hour."""

from __future__ import annotations

from pathlib import Path

from harness.host.artifacts import built

from .soak import soak

SECONDS = 60.0
PAGES = 1000
"""Few enough that all of them have been requested when measuring begins. The cache's record of each page is no leak,
and the number of requests a minute depends on the machine."""
MOST_MIB = {"envoy": 16.0, "coredns": 16.0, "longhaul": 2.0, "longhaul-object": 16.0}
"""The most that memory may grow in a minute when all is warm. A leak of one rewriter for each page would be
hundreds."""


def test_a_minute_of_load_loses_no_request_and_memory_stays(tmp_path: Path) -> None:
    for name in ("longhaul", "longhaul-objects", "coredns", "url_rewrite.wasm", "envoy", "origins"):
        built(name)
    result = soak(SECONDS, tmp_path, pages=PAGES)
    assert result.failures == []
    assert not result.restarts
    assert result.answers > 1000
    assert result.names > 50
    assert set(result.growth_mib) == set(MOST_MIB)
    for name, most in MOST_MIB.items():
        assert result.growth_mib[name] < most, result
