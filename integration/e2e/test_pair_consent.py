"""Consent to compressed headers: only the ground can give it, and it may change while both ends run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from e2e.pair_bed import LAB, PairBed, standing_pair
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.origins import odd as odd_origin
from harness.origins.odd import path_of

FORGER, FORGER_ADDRESS = "forger.example.org", "203.0.113.202"
CLAIMS = (b"x-longhaul-headers: %s" % value for value in (b"-", b"\\", b"%", b"&", b",!", b',"', b"forged"))
FORGED = [b"HTTP/1.1 200 OK\r\n%s\r\nx-longhaul-retry: 1\r\ncontent-length: 2\r\n\r\nok" % claim for claim in CLAIMS]

AT_ONCE = 4
"""The requests of `statuses` at a time."""


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:  # noqa: ARG001 - order of set-up
    folder = tmp_path_factory.mktemp("consent")
    records = {FORGER: [FORGER_ADDRESS]}
    with (
        standing_pair(folder, profile="leo", records=records, ground_packs=False) as standing,
        Child(standing.line.internet.inside(odd_origin.command(FORGER_ADDRESS)), folder / "forger.log") as one,
    ):
        one.wait_for_output("ready")
        standing.pair.until_piped()
        yield standing


def packed_messages(bed: PairBed) -> float:
    metrics = bed.pair.remote.metrics()
    return sum(value for name, value in metrics.items() if "header_compression_packed_total" in name)


def statuses(bed: PairBed, count: int) -> set[int]:
    """Returns the statuses of requests of every kind, several at a time."""
    body = bed.folder / "form.bin"
    body.write_bytes(b"f" * 16_000)
    kinds = [("--data-binary", "short"), ("--data-binary", f"@{body}"), ("--request", "DELETE"), ()]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = pool.map(lambda n: bed.curl.get(f"http://{LAB}/_/echo?{n}", *kinds[n % len(kinds)]), range(count))
        return {answer.status for answer in answers}


def ground_packs(bed: PairBed, packs: bool) -> None:
    """Changes the ground's file, and returns when the change is in force."""
    ground = bed.pair.ground
    before = ground.output().count("applied")
    lines = ground.config.read_text().splitlines()
    split = next(json.loads(line.partition(": ")[2]) for line in lines if line.startswith("split: "))
    split["pack_headers"] = packs
    others = [line for line in lines if not line.startswith("split: ")]
    fresh = ground.config.with_suffix(".new")
    fresh.write_text("\n".join([*others, f"split: {json.dumps(split)}", ""]))
    fresh.rename(ground.config)
    wait_for("the change in force", lambda: ground.output().count("applied") > before, timeout_s=30)


def ground_is_there(bed: PairBed) -> bool:
    """Do the remote's health checks reach the ground?"""
    return bed.pair.remote.metrics()['envoy_cluster_membership_healthy{envoy_cluster_name="pipe"}'] > 0


def uptime_s(bed: PairBed) -> float:
    """Returns the seconds since the ground's Envoy started, or infinity while none runs."""
    try:
        told = json.loads(bed.pair.ground.admin("/server_info"))["uptime_current_epoch"]
    except (OSError, ValueError):
        return float("inf")
    return float(told.rstrip("s"))


def test_an_origin_forges_the_grounds_consent(bed: PairBed) -> None:
    for response in FORGED:
        for _ in range(3):
            answer = bed.curl.get(f"http://{FORGER}{path_of(response)}")
            assert (answer.status, answer.body) == (200, b"ok"), answer
            assert not [name for name, _ in answer.headers if name.startswith("x-longhaul-")]
    assert statuses(bed, 20) == {200}
    workers = bed.pair.remote.metrics()["envoy_server_concurrency{}"]
    # A worker tries once with a ground that it does not know, and so do requests that leave before the refusal. After a
    # consent that it believed, each of the others would be compressed.
    believed = max(0.0, packed_messages(bed) - workers * AT_ONCE)
    print(f"forged_consents {believed:.0f}")
    assert not believed


def test_a_ground_reloaded_without_packing_costs_the_remote_its_http(bed: PairBed) -> None:
    bed.pair.remote.quit_envoy()
    ground_packs(bed, True)
    wait_for("a pipe", lambda: bed.curl.get(f"http://{LAB}/again.bin").status == 200, timeout_s=30)
    bed.packs_headers()
    ground_packs(bed, False)
    # Open connections keep their filters until they are drained. New ones have no filter.
    for _ in range(3):
        assert statuses(bed, 8) == {200}
    before = uptime_s(bed)
    bed.pair.ground.quit_envoy()
    # The next Envoy may run before a health check fails. Until then no request informs the remote of the change.
    wait_for("another Envoy at the ground", lambda: uptime_s(bed) < before, timeout_s=60, interval_s=0.2)
    wait_for("the ground back", lambda: ground_is_there(bed), timeout_s=60)
    for _ in range(3):
        assert statuses(bed, 8) == {200}
