"""The problems of a pair: `longhaul status`, the status page and the log name each within 10 s, and its end."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from e2e.pair_bed import PairBed, standing_pair
from harness.boxes.pair import PIPE_PORT
from harness.boxes.pep import command
from harness.host.processes import of_program
from harness.host.waiting import wait_for
from harness.lab.contenders.base import rules
from harness.net.topology import RESOLVER

NAMED_WITHIN_S = 10.0
STATUS = "127.0.0.1:9900"


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:  # noqa: ARG001 - order of set-up
    with standing_pair(tmp_path_factory.mktemp("problems")) as standing:
        standing.until_warm()
        yield standing


def status(bed: PairBed) -> dict[str, Any]:
    """Returns what `longhaul status --json` prints at the remote."""
    done = command("status", "--state", bed.pair.remote.state, "--json")
    return json.loads(done.stdout)


def said(bed: PairBed, what: str) -> int:
    """Returns how often the remote logged this text."""
    return bed.pair.remote.output().count(what)


def is_well(bed: PairBed) -> bool:
    return status(bed)["problems"] == []


def named(bed: PairBed, label: str, words: str) -> float:
    """Waits until the status, its record and the log name the problem. Returns the seconds until then."""
    began = time.monotonic()
    lines = said(bed, f"problem ({label}): ")

    def everywhere() -> bool:
        seen = status(bed)
        records = [one for one in seen["last_problems"] if one["kind"] == label and one["ended"] is None]
        return (
            any(words in one for one in seen["problems"])
            and bool(records)
            and said(bed, f"problem ({label}): ") > lines
        )

    wait_for(f"`{words}`", everywhere, timeout_s=30, interval_s=0.2)
    return time.monotonic() - began


def is_over(bed: PairBed, label: str) -> dict[str, Any]:
    """Waits until the problem has ended, and returns its record."""

    def ended() -> bool:
        seen = status(bed)
        return seen["problems"] == [] and all(one["ended"] is not None for one in seen["last_problems"])

    wait_for("the end of the problem", ended, timeout_s=60, interval_s=0.5)
    return next(one for one in status(bed)["last_problems"] if one["kind"] == label)


@contextmanager
def stopped(bed: PairBed) -> Iterator[None]:
    """Stops the ground's Envoy for as long as the context lasts. Its kernel goes on."""
    (envoy,) = of_program("envoy", bed.line.gateway.processes())
    os.kill(envoy, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(envoy, signal.SIGCONT)


def test_a_silent_link_is_named_within_ten_seconds_and_recorded_with_its_duration(bed: PairBed) -> None:
    wait_for("a pair without problems", lambda: is_well(bed), timeout_s=60)
    silence = f"chain silence {{ type filter hook input priority 0; tcp dport {PIPE_PORT} drop; }}"
    began = time.time()
    with rules(bed.line.gateway, silence):
        took = named(bed, "link_silent", "the ground has not responded for ")
        time.sleep(3)
    stood = time.time() - began
    assert took < NAMED_WITHIN_S, took
    record = is_over(bed, "link_silent")
    assert took - 10 < record["began"] - began < took
    assert stood - 10 < record["duration_s"] < stood + 15, (record, stood)
    assert said(bed, f"over after {record['duration_s']} s (link_silent)") == 1
    # The record outlives a restart.
    bed.pair.remote.child.stop()
    bed.pair.remote.__enter__()
    wait_for(
        "the record", lambda: record["began"] in [one["began"] for one in status(bed)["last_problems"]], timeout_s=30
    )
    bed.until_warm()


def test_a_ground_that_hangs_is_told_from_a_silent_link(bed: PairBed) -> None:
    wait_for("a pair without problems", lambda: is_well(bed), timeout_s=60)
    with stopped(bed):
        took = named(bed, "ground_silent", "its machine acknowledges, and Longhaul there does not")
    assert took < NAMED_WITHIN_S + 2, took
    is_over(bed, "ground_silent")
    bed.until_warm()


def test_a_remote_names_a_resolver_that_is_silent_to_its_ground(bed: PairBed) -> None:
    wait_for("a pair without problems", lambda: is_well(bed), timeout_s=60)
    silence = f"chain names {{ type filter hook output priority 0; ip daddr {RESOLVER} udp dport 53 drop; }}"
    with rules(bed.line.gateway, silence):
        took = named(bed, "ground_reports", f"the ground reports: the resolver {RESOLVER}:53")
    assert took < NAMED_WITHIN_S + 2, took
    assert is_over(bed, "ground_reports")["of"] == f"resolver_down {RESOLVER}:53"


def test_a_full_link_is_no_problem(bed: PairBed) -> None:
    wait_for("a pair without problems", lambda: is_well(bed), timeout_s=60)
    seen: list[str] = []
    with ThreadPoolExecutor(4) as pool:
        busy = [pool.submit(bed.downloads, 8_000_000, 120) for _ in range(2)]
        busy += [pool.submit(bed.uploads, 4_000_000, 120) for _ in range(2)]
        while not all(one.done() for one in busy):
            seen += status(bed)["problems"]
            time.sleep(0.5)
        for one in busy:
            one.result()
    assert seen == []
