"""`longhaul measure` against the link emulator: the kernel's figures of clients' connections show the link."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness.artifacts import built
from harness.authority import Authority
from harness.bed import Bed
from harness.origins import Site
from harness.pep import command
from harness.topology import RESOLVER

WWW = "www.example.org"
SIZE = 30_000_000
"""Bytes of a download, which none of the clients finishes."""
CLIENTS = 6
RTT_US, DOWN = 80_000, 8_000_000
"""The profile `rural-lte`."""
CONFIGURED = {"rtt": "600ms", "down": "20mbit", "up": "1mbit"}


def measure(bed: Bed, *options: str) -> subprocess.CompletedProcess[str]:
    """Measures at the gateway."""
    line = [built("longhaul"), "measure", bed.config, *options]
    return bed.topology.gateway.run(*line)


def test_the_link_is_measured_under_load_and_the_line_for_it_proposed(root_bed: None, folder: Path) -> None:  # noqa: ARG001
    site = Site([f"{RESOLVER}:53"], hosts={WWW: {"address": "203.0.113.1", "special": True}})
    with Bed(folder, site, [WWW], Authority(folder), link_profile="rural-lte", link=CONFIGURED) as bed:
        idle = measure(bed, "--time", "100ms")
        assert "too few connections: 0 that say something about it, of 5" in idle.stdout, idle.stdout
        assert "link:" not in idle.stdout
        with ThreadPoolExecutor(CLIENTS) as pool:
            url = f"http://{WWW}/_/answer?type=application/octet-stream&size={SIZE}"
            for _ in range(CLIENTS):
                pool.submit(bed.curl.get, url, "--max-time", "7")
            done = measure(bed, "--time", "6s", "--json")
    answer = json.loads(done.stdout)
    measured = answer["measured"]
    within(measured["rtt_us"], RTT_US)
    within(measured["rate"], DOWN)
    assert answer["direction"] == "down"
    assert answer["suggestion"].startswith("link: { rtt: "), answer
    # The proposed line is one that the configuration accepts, and the rate that was not measured is kept.
    assert answer["suggestion"].endswith("up: 1mbit }"), answer
    text = bed.config.read_text()
    assert f"link: {json.dumps(CONFIGURED)}" in text
    bed.config.write_text(text.replace(f"link: {json.dumps(CONFIGURED)}", answer["suggestion"]))
    checked = command("check", bed.config)
    assert checked.returncode == 0, checked.stderr


def within(estimate: dict[str, Any], truth: int) -> None:
    """An estimate is within a fifth of the truth, and enough connections agree on it."""
    assert "known" in estimate, estimate
    assert estimate["known"]["connections"] >= CLIENTS - 1
    assert 0.8 < estimate["known"]["value"] / truth < 1.2, estimate
