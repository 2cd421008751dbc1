"""Names that the ground of a pair sends before they are asked (`dns.push`)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from e2e.pair_bed import LAB, RTT_S, TODAY, PairBed, standing_pair
from harness.boxes.pep import parse_metrics
from harness.host.artifacts import built
from harness.host.processes import of_program
from harness.host.waiting import wait_for

COREDNS = "http://127.0.0.1:9153/metrics"
PAGE, OTHERS = LAB, ("h1.example.org", "h2.example.org", TODAY)
"""The name of a page, and those of its objects."""
MINE = "h5.example.org"
"""A name that one client alone asks after that of the page."""


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:  # noqa: ARG001 - order of set-up
    with standing_pair(tmp_path_factory.mktemp("ahead"), steered=()) as standing:
        standing.pair.until_piped()
        yield standing


def counted(bed: PairBed, metric: str) -> float:
    page = parse_metrics(bed.pair.remote.page(COREDNS))
    return sum(value for name, value in page.items() if name.startswith(f"coredns_remember_{metric}"))


def new_remote(bed: PairBed) -> None:
    """Starts the remote with an empty memory."""
    bed.pair.remote.child.stop()
    shutil.rmtree(bed.pair.remote.state / "kept")
    bed.pair.remote.__enter__()
    until_open(bed)


def until_open(bed: PairBed) -> None:
    bed.pair.until_piped()
    wait_for("the stream", lambda: counted(bed, "pushed_stream") == 1, timeout_s=30)


def asks(bed: PairBed, names: Sequence[str]) -> None:
    """Looks names up one after the other. Each of them crosses the link."""
    for name in names:
        answer = bed.dig(name, "A")
        assert answer.addresses() == [bed.address(name)], answer
        assert answer.seconds > RTT_S * 0.9, answer


def is_sent(bed: PairBed, names: Sequence[str]) -> None:
    """Asserts that the ground sent these names and no others, and that they cost no round trip."""
    wait_for("the names", lambda: counted(bed, "pushed_total") >= len(names), timeout_s=10)
    before = counted(bed, 'hits_total{age="pushed"')
    for name in names:
        answer = bed.dig(name, "A")
        assert answer.addresses() == [bed.address(name)], answer
        assert answer.seconds < RTT_S / 2, answer
    assert counted(bed, 'hits_total{age="pushed"') == before + len(names)
    assert counted(bed, "pushed_total") == len(names)


def test_a_new_remote_gets_the_names_of_a_page_with_the_first_one(bed: PairBed) -> None:
    until_open(bed)
    asks(bed, [PAGE, *OTHERS, MINE])
    new_remote(bed)
    # One client taught nothing.
    asks(bed, [PAGE, *OTHERS])

    # A ground that starts again still knows.
    (coredns,) = of_program("coredns", bed.line.gateway.processes())
    os.kill(coredns, signal.SIGTERM)
    file = bed.pair.ground.state / "kept" / "followers"
    wait_for("the file", file.exists, timeout_s=10)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with bed.pair.without_ground():
        pass
    new_remote(bed)
    asks(bed, [PAGE])
    is_sent(bed, OTHERS)
    asks(bed, [MINE])
    assert counted(bed, "pushed_used_bytes_total") == counted(bed, "pushed_bytes_total") > 0


def test_a_remote_that_starts_again_gets_nothing_twice(bed: PairBed) -> None:
    bed.pair.remote.child.stop()
    bed.pair.remote.__enter__()
    until_open(bed)
    assert bed.dig(OTHERS[0], "A").seconds < RTT_S / 2
    # Names that follow would be here before the next response.
    asks(bed, ["h7.example.org"])
    assert counted(bed, "pushed_total") == 0


def test_explain_and_status_say_where_names_are_from(bed: PairBed) -> None:
    new_remote(bed)

    def source(name: str) -> str:
        done = command_in(bed, "explain", bed.pair.remote.config, "--name", name, "--json")
        return json.loads(done)["source"].partition(":")[0]

    page = command_in(bed, "explain", bed.pair.remote.config, "--url", f"http://{OTHERS[0]}/")
    assert "name unknown: no response is remembered" in page, page
    asks(bed, [PAGE])
    wait_for("the names", lambda: counted(bed, "pushed_total") >= len(OTHERS), timeout_s=10)
    assert [source(name) for name in (PAGE, OTHERS[0], "h6.example.org")] == ["remembered", "pushed", "asked"]
    page = command_in(bed, "explain", bed.pair.remote.config, "--url", f"http://{OTHERS[0]}/")
    assert "name pushed: the ground sent it" in page, page
    assert counted(bed, 'hits_total{age="pushed"') == 0, "an explanation counts as a query"
    bed.dig(OTHERS[0], "A")
    status = command_in(bed, "status", "--state", bed.pair.remote.state)
    assert "1 pushed by the ground" in status, status
    assert "bytes of responses came before they were asked" in status, status
    ground = bed.pair.ground
    sent = parse_metrics(ground.page(COREDNS))['coredns_push_responses_total{reason="follows"}']
    assert sent >= len(OTHERS)
    status = bed.line.gateway.run(built("longhaul"), "status", "--state", ground.state, check=False).stdout
    assert "bytes of responses sent to remotes before they asked" in status, status


def command_in(bed: PairBed, *words: str | Path) -> str:
    """Runs `longhaul` on the remote's machine, and returns its output."""
    return bed.line.near.run(built("longhaul"), *words, check=False).stdout


def test_no_client_reaches_the_route_of_the_stream(bed: PairBed) -> None:
    hello = bed.folder / "hello"
    hello.write_bytes(bytes([29, ord("h"), 1, *range(16), *range(8), 0, 1, 60]))
    for host in ("lookups.pair.invalid", "lookups.pair.invalid:80", "LOOKUPS.pair.invalid"):
        answer = bed.curl.get(
            f"http://{LAB}/longhaul.names/push", "-H", f"Host: {host}", "-H", "longhaul-lookup: 1",
            "--data-binary", f"@{hello}",
        )  # fmt: skip
        # The hello of a ground.
        assert b"\x02h\x01" not in answer.body, answer
        assert answer.status >= 400, answer


def test_a_ground_can_leave_it_out(bed: PairBed) -> None:
    config = bed.pair.ground.config
    written = config.read_text()
    asks_again = [PAGE, *OTHERS]
    try:
        with bed.pair.without_ground():
            config.write_text(f'{written}dns: {{ "push": false }}\n')
        bed.pair.remote.child.stop()
        shutil.rmtree(bed.pair.remote.state / "kept")
        bed.pair.remote.__enter__()
        bed.pair.until_piped()
        asks(bed, asks_again)
        assert (counted(bed, "pushed_stream"), counted(bed, "pushed_total")) == (0, 0)
    finally:
        with bed.pair.without_ground():
            config.write_text(written)
