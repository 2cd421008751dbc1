"""`longhaul measure` and a running box against the link emulator: the kernel's figures of connections show the link."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from e2e.pair_bed import LAB, standing_pair
from harness.boxes.bed import Bed
from harness.boxes.pep import Pep, command
from harness.host.artifacts import built
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.net.namespaces import Namespace
from harness.net.topology import RESOLVER
from harness.origins.program import Site

WWW = "www.example.org"
DOWNLOAD = f"http://{WWW}/_/answer?type=application/octet-stream&size=30000000"
"""A download that takes longer than the test."""
SLOW = f"http://{LAB}/_/answer?wait=5500"
"""A late response, so that a client continues to send."""
CLIENTS = 6
RTT_US, DOWN, UP = 80_000, 8_000_000, 2_000_000
"""The profile `rural-lte`."""
NOTICED_S = 45
"""The longest time until a running box notices a wrong round trip: three readings, 10 s apart, under load."""
CONFIGURED = {"rtt": "600ms", "down": "20mbit", "up": "1mbit"}


def measure(host: Namespace, config: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Measures on a host with a box."""
    return host.run(built("longhaul"), "measure", config, *options)


def test_the_link_is_measured_under_load_and_the_line_for_it_proposed(root_bed: None, folder: Path) -> None:  # noqa: ARG001
    site = Site([f"{RESOLVER}:53"], hosts={WWW: {"address": "203.0.113.1", "special": True}})
    with Bed(folder, site, [WWW], Authority(folder), link_profile="rural-lte", link=CONFIGURED) as bed:
        gateway = bed.topology.gateway
        idle = measure(gateway, bed.config, "--time", "100ms")
        assert "too few connections: 0 that say something about it, of 5" in idle.stdout, idle.stdout
        assert "link:" not in idle.stdout
        with ThreadPoolExecutor(CLIENTS) as pool:
            for _ in range(CLIENTS):
                pool.submit(bed.curl.get, DOWNLOAD, "--max-time", str(NOTICED_S))
            done = measure(gateway, bed.config, "--time", "6s", "--json")
            warning = wait_for("the warning", lambda: warnings(gateway, bed.pep), NOTICED_S, interval_s=0.5)
        assert "problem:" not in status_of(gateway, bed.pep)
        logged = bed.pep.output()
    # A box that runs notices the difference by itself, says so once, and proposes a line with the measured value.
    assert warning[0].startswith("warning: `link.rtt` is 600ms, but "), warning
    assert "this line fits: `link: { rtt: " in warning[0], warning
    assert logged.count("WARNING longhaul: `link.rtt` is 600ms, but ") == 1, logged
    answer = json.loads(done.stdout)
    measured = answer["measured"]
    within(measured["rtt_us"], RTT_US, CLIENTS - 1)
    within(measured["rate"], DOWN, CLIENTS - 1)
    assert answer["direction"] == "down"
    assert answer["suggestion"].startswith("link: { rtt: "), answer
    # The configuration accepts the proposed line, which keeps the rate that was not measured.
    assert answer["suggestion"].endswith("up: 1mbit }"), answer
    text = bed.config.read_text()
    assert f"link: {json.dumps(CONFIGURED)}" in text
    bed.config.write_text(text.replace(f"link: {json.dumps(CONFIGURED)}", answer["suggestion"]))
    checked = command("check", bed.config)
    assert checked.returncode == 0, checked.stderr


def test_each_end_of_a_pair_measures_the_direction_in_which_it_sends(root_bed: None, folder: Path) -> None:  # noqa: ARG001
    body = folder / "body.bin"
    body.write_bytes(b"u" * 4_000_000)
    # With shares, an end never fills the link.
    with standing_pair(folder, profile="rural-lte", fill="off") as bed:
        bed.pair.until_piped()
        loads = {
            "down": (bed.line.gateway, bed.pair.ground.config, (DOWNLOAD.replace(WWW, LAB),), DOWN),
            "up": (
                bed.line.near,
                bed.pair.remote.config,
                (SLOW, "--header", "Expect:", "--data-binary", f"@{body}"),
                UP,
            ),
        }
        for direction, (host, config, request, rate) in loads.items():
            # A busy machine may send less than the link carries, but never more.
            for _ in range(6):
                with ThreadPoolExecutor(2) as pool:
                    for _ in range(2):
                        pool.submit(bed.curl.get, *request, "--max-time", "6")
                    answer = json.loads(measure(host, config, "--time", "5s", "--json").stdout)
                if answer["measured"]["rate"].get("known", {"value": 0})["value"] > 0.8 * rate:
                    break
            assert answer["direction"] == direction
            within(answer["measured"]["rtt_us"], RTT_US, 1)
            within(answer["measured"]["rate"], rate, 1)
            assert answer["suggestion"] is None, "the pair is configured as the link is"
        # Each end measures the round trip while it runs, beside the configured one, and has nothing to warn of.
        for host, end in ((bed.line.gateway, bed.pair.ground), (bed.line.near, bed.pair.remote)):
            wait_for("the round trip", lambda host=host, end=end: "measured link" in status_of(host, end), NOTICED_S)
            assert warnings(host, end) == []


def status_of(host: Namespace, end: Pep) -> str:
    """Returns the text of `longhaul status`."""
    return host.run(built("longhaul"), "status", "--state", end.state).stdout


def warnings(host: Namespace, end: Pep) -> list[str]:
    """Returns the warnings of `longhaul status`."""
    return [line for line in status_of(host, end).splitlines() if line.startswith("warning: ")]


def within(estimate: dict[str, Any], truth: int, connections: int) -> None:
    """Asserts that an estimate is within a fifth of the truth, and that enough connections agree on it."""
    assert "known" in estimate, estimate
    assert estimate["known"]["connections"] >= connections
    assert 0.8 < estimate["known"]["value"] / truth < 1.2, estimate
