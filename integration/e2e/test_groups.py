"""Groups of clients: weights at both ends, a quota that slows, and the bill."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator

import pytest

from harness.boxes.pep import command, parse_metrics
from harness.host.waiting import wait_for
from harness.lab.groups import NO_CLIENT, accounts, bulk, crossed, group, until_weighed, used, weights_in
from harness.lab.neighbours import BULK, CLIENTS, SERVERS, NeighbourBed, neighbour_bed

LINK = {"down.rate_bps": "4000000", "up.rate_bps": "1000000", "down.delay_ms": "150", "up.delay_ms": "150"}
METRICS = "http://127.0.0.1:9153/metrics"
STATED = {"rtt": "300ms", "down": "4mbit", "up": "1mbit"}
BRIDGE, CREW, NOBODY = 0, 1, 2
"""Clients: one of each group, and one of none."""
SAVED_S = 2
"""The time of the link that a client saves up while it is quiet."""
GROUPS = [group("bridge", BRIDGE, weight=4), group("crew", CREW, quota="1gib/day")]


@pytest.fixture(scope="module")
def bed(
    root_bed: None,  # noqa: ARG001 - order of set-up
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[NeighbourBed]:
    folder, near = tmp_path_factory.mktemp("groups"), {"clients": GROUPS, "log": {"who": "on"}}
    with neighbour_bed(folder, "fair", link=LINK, stated=STATED, near=near) as running:
        until_weighed(running, 40)
        yield running


def part(bed: NeighbourBed, *jobs: tuple[int, int, bool]) -> list[float]:
    """The part of each client, once all have used up what they saved: its number, its downloads, and true for https."""
    skip_s = SAVED_S * len(jobs) + 1
    got = bed.load(*(bulk(client, streams, skip_s + 7, skip_s, tls=tls) for client, streams, tls in jobs))
    total = sum(one["bytes"] for one in got)
    return [one["bytes"] / total for one in got]


def test_a_client_has_the_weight_of_its_group_over_http_and_https(bed: NeighbourBed) -> None:
    bridge, crew, nobody = part(bed, (BRIDGE, 2, True), (CREW, 8, False), (NOBODY, 8, True))
    # Four sixths, one, and one. With equal weights, each has a third.
    assert 0.52 < bridge < 0.78, (bridge, crew, nobody)
    assert min(crew, nobody) > 0.1, (bridge, crew, nobody)


def test_the_bill_counts_each_group_and_who_used_what_stays_in_a_file_for_root(bed: NeighbourBed) -> None:
    remote = bed.running.remote
    [whole] = bed.load({"do": "get", "host": BULK, "to": SERVERS[BULK], "from": CLIENTS[NOBODY], "after_s": 0,
                        "number": 1, "tls": True, "path": "/40000/close"})  # fmt: skip
    assert whole["whole"]
    wait_for("the accounts", lambda: accounts(remote)["others"]["today"]["down"] > 40000, timeout_s=20)
    found = accounts(remote)
    assert found["bridge"]["today"]["down"] > found["crew"]["today"]["down"] > 40000, found
    assert found["crew"]["quota"]["used"] >= found["crew"]["today"]["down"]
    assert not found["crew"]["quota"]["slow"]
    metrics = parse_metrics(remote.page(METRICS))
    for name in ("bridge", "crew", "others"):
        assert metrics[f'longhaul_group_bytes_total{{group="{name}",direction="down"}}'] > 0
        assert metrics[f'longhaul_group_bytes_total{{group="{name}",direction="up"}}'] > 0
    files = list((remote.state / "who").iterdir())
    assert files
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o640 for file in files)
    assert stat.S_IMODE((remote.state / "who").stat().st_mode) == 0o750
    done = command("log", "--who", "--json", "--state", remote.state)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(row["client"], row["site"]) for row in rows} >= {(CLIENTS[at], BULK) for at in (BRIDGE, CREW, NOBODY)}
    assert next(row["down"] for row in rows if row["client"] == CLIENTS[NOBODY]) > 40000
    words = command("status", "--state", remote.state).stdout
    assert re.search(r"^group +bridge: weight 4, .* down", words, re.MULTILINE), words
    public = words + remote.page(METRICS) + (remote.state / "run.json").read_text()
    assert BULK not in public
    assert CLIENTS[CREW] not in public


def test_the_accounts_add_up_to_the_link_with_the_bytes_of_no_client(bed: NeighbourBed) -> None:
    remote = bed.running.remote
    before, began = used(remote), crossed(remote)
    # The clients leave in the middle of their downloads.
    bed.load(bulk(CREW, 8, 1.5, 0), bulk(BRIDGE, 4, 1.5, 0, tls=True))

    def are_equal() -> bool:
        # Bytes from before this test may come to the accounts in it. In all, the accounts never have more than the
        # link.
        link, accounted = crossed(remote), sum(used(remote).values())
        return accounted - sum(before.values()) > 0.98 * (link - began) and accounted < 1.02 * link

    # These bytes come some time after those of clients.
    wait_for("bytes of no client", lambda: used(remote)[NO_CLIENT] > before[NO_CLIENT], timeout_s=60, interval_s=1)
    wait_for("sums that are equal", are_equal, timeout_s=90, interval_s=1)
    metrics = parse_metrics(remote.page(METRICS))
    assert metrics[f'longhaul_group_bytes_total{{group="{NO_CLIENT}",direction="down"}}'] > 0
    words = command("status", "--state", remote.state).stdout
    assert re.search(rf"^group +{NO_CLIENT}: today .* down", words, re.MULTILINE), words


def test_a_quota_slows_while_running_and_never_cuts(bed: NeighbourBed) -> None:
    remote = bed.running.remote
    file = remote.config
    # With what it has used before, more than its next quota.
    bed.load(bulk(CREW, 2, 2.5, 0))
    text = file.read_text()
    try:
        file.write_text(text.replace("1gib/day", "1mib/day"))
        until_weighed(bed, 40, 1)
        wait_for("the report", lambda: accounts(remote)["crew"]["quota"]["slow"], timeout_s=20)
        assert parse_metrics(remote.page(METRICS))['longhaul_group_slow{group="crew"}'] == 1
        assert "SLOW" in command("status", "--state", remote.state).stdout
        crew, nobody = part(bed, (CREW, 4, True), (NOBODY, 4, True))
        # With equal weights, each has a half.
        assert crew < 0.35, (crew, nobody)
        get = {"do": "get", "host": BULK, "to": SERVERS[BULK], "from": CLIENTS[CREW], "after_s": 0, "number": 1}
        assert [one["whole"] for one in bed.load(get | {"tls": False, "path": "/60000/close"})] == [True]
    finally:
        file.write_text(text)
    until_weighed(bed, 40)


def test_a_remote_without_groups_weighs_nobody(bed: NeighbourBed) -> None:
    remote = bed.running.remote
    text = remote.config.read_text()
    try:
        remote.config.write_text(re.sub(r"^clients: .*\n", "", text, flags=re.MULTILINE))
        wait_for("equal weights at the ground", lambda: weights_in(bed.running.ground, "share") == {10}, timeout_s=60)
        assert not (remote.state / "rendered" / "ecds" / "share_bytes.yaml").exists()
    finally:
        remote.config.write_text(text)
    until_weighed(bed, 40)
