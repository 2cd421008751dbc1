"""A pair with `split.when_down: direct`. Clients bypass the ground while it is down, and use its pipe when it is
back."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from e2e.pair_bed import LAB, LISTED, TODAY, PairBed, standing_pair
from harness.boxes.pair import PIPE_PORT
from harness.clients.commands import Answer, Curl
from harness.host.waiting import wait_for
from harness.lab.contenders.base import rules
from harness.net.topology import FORBIDDEN

GONE, BACK = "connecting to origins directly", "requests use the pipe again"
NAMED = ("new", "known", "unnamed")
SWITCH_S = 12.0
"""A health check, its timeout, and a round trip or two of this link, on a busy machine."""


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:  # noqa: ARG001 - order of set-up
    with standing_pair(tmp_path_factory.mktemp("direct"), when_down="direct") as standing:
        yield standing


def said(bed: PairBed, what: str) -> int:
    """Returns how often the remote logged this text."""
    return bed.pair.remote.output().count(what)


def is_on_the_pipe(bed: PairBed, prefix: str) -> bool:
    """Requests one more object. Returns whether the ground's log shows any object with this prefix so far."""
    answer = bed.curl.get(f"http://{LAB}{prefix}{time.monotonic_ns()}.bin", timeout_s=20)
    came = [one for one in bed.pair.ground.requests() if one.get("path", "").startswith(prefix)]
    return answer.status == 200 and bool(came)


def secure(bed: PairBed, name: str) -> Answer:
    """Requests an https page by the origin's own address."""
    return bed.curl.get(f"https://{name}/page.html", "--resolve", f"{name}:443:{bed.address(name)}", timeout_s=30)


def looked_up(bed: PairBed) -> tuple[float, float]:
    """Returns how many names the remote has looked up for clients that it knows, and for unknown ones."""
    metrics = bed.pair.remote.metrics()
    count = {reason: metrics.get(f'longhaul_name_budget_requests_total{{reason="{reason}"}}', 0.0) for reason in NAMED}
    return count["new"] + count["known"], count["unnamed"]


def through_the_pipe(bed: PairBed, name: str) -> None:
    prefix = f"/{name}-{time.monotonic_ns()}-"
    wait_for("the pipe in use", lambda: is_on_the_pipe(bed, prefix), timeout_s=60, interval_s=0.5)


def test_the_ground_is_used_while_it_answers(bed: PairBed) -> None:
    bed.until_warm()
    through_the_pipe(bed, "before")
    assert (said(bed, GONE), said(bed, BACK)) == (0, 0)
    assert secure(bed, LAB).status == 200
    hops = {one["hop"] for one in bed.pair.ground.requests() if "pair.invalid" in one.get("authority", "")}
    assert "inner" not in hops, "the checks go on all the time, and ask for no origin"


def test_clients_go_on_directly_while_the_ground_is_gone_and_over_the_pipe_when_it_is_back(bed: PairBed) -> None:
    bed.until_warm()
    gone, back = said(bed, GONE), said(bed, BACK)
    # A stop and a start take time, so all checks of the direct way share one outage.
    with bed.pair.without_ground():
        began = time.monotonic()
        url = f"http://{LAB}/plain.bin"
        answer = bed.curl.get(url, timeout_s=30)
        assert (answer.status, answer.body) == (200, bed.original(url))
        assert not [name for name, _ in answer.headers if name.startswith(("x-longhaul", "x-envoy", "via"))]
        before = looked_up(bed)
        assert secure(bed, TODAY).status == 200
        assert time.monotonic() - began < SWITCH_S
        named, unnamed = looked_up(bed)
        assert named > before[0], "the client has a budget of new names"
        assert unnamed == 0, "a client without a budget"
        wait_for("a word in the log", lambda: said(bed, GONE) == gone + 1)
        names_are_the_truth(bed)
        bed.uploads(300_000, timeout_s=30)
        nobody_is_taken_where_nobody_may_go(bed)
        # The sockets that a browser opened in advance reach their origin after a while.
        bed.load_in_chromium("h3.example.org")
    wait_for("a word in the log", lambda: said(bed, BACK) == back + 1, timeout_s=60)
    through_the_pipe(bed, "after")
    bed.until_warm()


def names_are_the_truth(bed: PairBed) -> None:
    # No client has queried these names before.
    assert bed.dig("h20.example.org", "A").addresses() == [bed.address("h20.example.org")]
    assert bed.dig("nowhere.example.org", "A").status == "NXDOMAIN"
    for scheme in ("http", "https"):
        assert bed.curl.get(f"{scheme}://{LISTED}/page.html", timeout_s=30).status == 200


def nobody_is_taken_where_nobody_may_go(bed: PairBed) -> None:
    connects = len(bed.origins.events("connect"))
    for name in sorted(FORBIDDEN):
        answer = bed.curl.get(f"http://{name}/", "--resolve", f"{name}:80:203.0.113.77", timeout_s=30)
        assert answer.status in {403, 502, 508}, (name, answer)
        insecure = Curl(bed.folder, bed.line.clients, "--insecure")
        answer = insecure.get(f"https://{name}/", "--resolve", f"{name}:443:203.0.113.77", timeout_s=30)
        assert answer.status == 0, (name, answer)
    assert len(bed.origins.events("connect")) == connects


def test_a_ground_that_falls_silent_is_left_alone_too(bed: PairBed) -> None:
    bed.until_warm()
    gone, back = said(bed, GONE), said(bed, BACK)
    silence = f"chain silence {{ type filter hook input priority 0; tcp dport {PIPE_PORT} drop; }}"
    with rules(bed.line.gateway, silence):
        wait_for("a word in the log", lambda: said(bed, GONE) == gone + 1, timeout_s=SWITCH_S + 5)
        began = time.monotonic()
        assert bed.curl.get(f"http://{LAB}/silent.bin", timeout_s=30).status == 200
        assert secure(bed, LAB).status == 200
        assert time.monotonic() - began < SWITCH_S
    wait_for("a word in the log", lambda: said(bed, BACK) == back + 1, timeout_s=60)
    through_the_pipe(bed, "heard")
