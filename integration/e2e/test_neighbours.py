"""Clients of a pair share its link: a greedy one gets no more than its neighbours."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.boxes.pair import PIPE_PORT, REMOTE_NAME
from harness.boxes.pep import Pep
from harness.clients.commands import Curl
from harness.host.waiting import wait_for
from harness.lab.line import FAR
from harness.lab.neighbour_loads import beside, page
from harness.lab.neighbours import (
    BULK,
    CLIENTS,
    OTHER,
    OTHER_CLIENTS,
    SERVERS,
    NeighbourBed,
    light_document,
    neighbour_bed,
)

LINK = {"down.rate_bps": "4000000", "up.rate_bps": "1000000", "down.delay_ms": "150", "up.delay_ms": "150"}
STATED = {"rtt": "300ms", "down": "4mbit", "up": "1mbit"}


@pytest.fixture(scope="module")
def bed(
    root_bed: None,  # noqa: ARG001 - order of set-up
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[NeighbourBed]:
    folder, wasm = tmp_path_factory.mktemp("neighbours"), {"engine": "wasm"}
    with neighbour_bed(folder, "fair", link=LINK, stated=STATED, near=wasm) as running:
        yield running


def test_a_client_with_sixteen_downloads_gets_what_one_with_one_gets(bed: NeighbourBed) -> None:
    # Behind what each of four clients has saved up.
    seconds, skip_s = 18, 9
    bulk = {"do": "bulk", "host": BULK, "to": SERVERS[BULK], "seconds": seconds, "skip_s": skip_s}
    greedy = [bulk | {"from": CLIENTS[0], "streams": 8, "tls": tls} for tls in (False, True)]
    others = [bulk | {"from": CLIENTS[1 + number], "streams": 1, "tls": tls} for number, tls in ((0, False), (1, True))]
    # These end while the link is full: a server that closes behind the last byte, and text.
    get = {"do": "get", "host": BULK, "to": SERVERS[BULK], "from": CLIENTS[3], "after_s": 2, "number": 1}
    ends = [get | {"tls": tls, "path": "/150000/close"} for tls in (False, True)]
    ends += [get | {"tls": False, "path": f"/30000/text?type={kind}"} for kind in ("application/json", "text/html")]
    results = bed.load(*greedy, *others, *ends)
    got = [one["bytes"] for one in results[:4]]
    # Each of four clients has a quarter, and the short responses end sooner.
    assert sum(got[:2]) < 0.5 * sum(got), got
    assert min(got[2:]) > 0.15 * sum(got), got
    assert sum(got) * 8 / (seconds - skip_s) > 0.6 * 4e6, "the limit leaves the link no more idle than it says"
    assert [one["whole"] for one in results[4:]] == [True] * 4, results[4:]
    # Connections that are busy for so long start BBR again, where the kernel has it, and have it still.
    renewals = bed.running.ground.metrics().get("longhaul_link_share_renewals_total{}", 0)
    assert (renewals > 0) == ("renewed" in _shares_of(bed).read_text()), renewals
    listed = ["ss", "--tcp", "--info", "--no-header", "state", "established", f"sport = :{PIPE_PORT}"]
    sockets = subprocess.check_output(bed.line.gateway.inside(listed), text=True)
    assert sockets.count(" bbr ") == (sockets.count("cwnd:") if renewals else 0), sockets


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_uploads_share_the_link_too(bed: NeighbourBed, *, tls: bool) -> None:
    got = bed.uploads([8, 1], 12, skip_s=5, tls=tls)
    assert 0.35 * sum(got) < got[0] < 0.65 * sum(got), got


def test_a_page_that_names_objects_is_whole_beside_downloads(bed: NeighbourBed) -> None:
    """The ground holds a piece of a page until it has announced what the piece names. Other pieces of the page wait for
    their turn, and native filters share one buffer."""
    curl = Curl(bed.folder, bed.line.clients, "--compressed", "--header", "accept: text/html")

    def count(box: Pep, name: str) -> float:
        return box.metrics()[f"longhaul_{name}"]

    flights, waited = "bundling_flights_total{}", 'link_share_bytes_total{reason="waited"}'
    before = count(bed.running.remote, flights), count(bed.running.ground, waited)
    # Of the same client, whose page does not go before them.
    job = {"do": "bulk", "host": BULK, "to": SERVERS[BULK], "from": CLIENTS[0], "streams": 2, "tls": False}
    downloads = bed.start(job | {"seconds": 600})
    try:
        wait_for("a full link", lambda: count(bed.running.ground, waited) > before[1])
        for number in range(8):
            found = curl.get(f"http://{next(iter(SERVERS))}/page/whole-{number}")
            assert (found.status, found.problem) == (200, ""), found
            assert found.body.decode() == light_document().replace("FRESH", f"whole-{number}")
    finally:
        downloads.terminate()
        downloads.wait()
    assert count(bed.running.remote, flights) == before[0] + 8, "each page began a flight"


def test_an_upload_that_waits_for_its_turn_arrives_once(
    root_bed: None,  # noqa: ARG001 - order of set-up
    tmp_path: Path,
) -> None:
    """Envoy keeps the first bytes of a request for a retry, in the buffer of those that wait."""
    with neighbour_bed(tmp_path, "fair", link=LINK, stated=STATED, near={"engine": "native"}) as bed:
        curl, body = Curl(tmp_path, bed.line.clients), tmp_path / "body"

        def waited() -> float:
            return bed.running.remote.metrics()['longhaul_link_share_bytes_total{reason="waited"}']

        with beside(bed, 4, tls=False, upload=True):
            wait_for("a full link", lambda: waited() > 0)
            for size in (60_000, 200_000, 20_000):
                before = waited()
                body.write_bytes(b"u" * size)
                resolve = f"{BULK}:80:{SERVERS[BULK]}"
                sent = curl.get(
                    f"http://{BULK}/{CLIENTS[0]}/0", "--resolve", resolve, "--data-binary", f"@{body}", timeout_s=60
                )
                assert (sent.status, sent.body) == (200, str(size).encode()), sent
                # A body that fits into Envoy's buffer, and the piece behind it, wait for nobody.
                assert waited() > before or size < 200_000


def test_the_limit_follows_a_link_that_carries_half_of_what_is_stated(
    root_bed: None,  # noqa: ARG001 - order of set-up
    tmp_path: Path,
) -> None:
    """The ground knows the link by the remote's report."""
    half, native = LINK | {"down.rate_bps": "2000000"}, {"engine": "native"}
    with neighbour_bed(tmp_path, "fair", link=half, stated=STATED, far=native, peers=["*.example"]) as bed:
        file = _shares_of(bed)

        def limit() -> int:
            return int(re.findall(r'bytes_per_second\\":(\d+)', file.read_text())[0])

        stated = limit()
        job = {"do": "bulk", "host": BULK, "to": SERVERS[BULK], "from": CLIENTS[0], "streams": 8, "tls": False}
        load = bed.start(job | {"seconds": 20, "skip_s": 0})
        wait_for("a lower limit", lambda: 0.2 * stated < limit() < 0.6 * stated, timeout_s=40)
        bed.finish(load)
        wait_for("a higher limit", lambda: limit() > 0.6 * stated, timeout_s=120)
        assert f"the link of {REMOTE_NAME} carries less" in bed.running.ground.output()


def test_all_addresses_of_an_ipv6_subscriber_are_one_client(bed: NeighbourBed) -> None:
    listeners = (bed.running.remote.state / "rendered" / "lds.yaml").read_text()
    pattern = json.loads(re.findall(r"google_re2: \{\}, regex: (\"\^\(.*?\$\")", listeners)[0])

    def tenant(address: str) -> str:
        return re.sub(pattern, lambda found: (found[1] or "") + (found[2] or ""), address)

    assert tenant("2001:db8:1:2:3:4:5:6") == tenant("2001:db8:1:2::6") == "2001:db8:1:2:"
    assert tenant("2001:db8::5:6:7:8") == tenant("2001:db8::1") == "2001:db8::"
    assert tenant("2001:db8:0:5:6:7:8:9") != tenant("2001:db8:0:4:6:7:8:9")
    assert tenant("192.0.2.7") == "192.0.2.7"


@pytest.mark.long
def test_clients_of_a_remote_with_a_second_ground_share_the_link_over_https(
    root_bed: None,  # noqa: ARG001 - order of set-up
    tmp_path: Path,
) -> None:
    """The second one does not respond, so it need not agree to read the names of clients."""
    peer = [f"{FAR}:{PIPE_PORT}", f"{FAR}:9"]
    with neighbour_bed(tmp_path, "fair", link=LINK, stated=STATED, peer=peer) as bed:
        got = bed.shares([8, 1], 12, skip_s=5, tls=True)
        assert 0.35 * sum(got) < got[0] < 0.65 * sum(got), got


@pytest.mark.long
def test_without_shares_the_greedy_client_has_most_of_the_link(
    root_bed: None,  # noqa: ARG001 - order of set-up
    tmp_path: Path,
) -> None:
    with neighbour_bed(tmp_path, "unshared", link=LINK, stated=STATED) as bed:
        assert "longhaul.names_clients" not in bed.running.remote.admin("/runtime")
        got = bed.shares([16, 1, 1, 1], 14, skip_s=5, tls=True)
        assert got[0] > 0.5 * sum(got), got
        # Streams take turns on the pipe nevertheless. Without turns, a page takes 16 to 25 s beside downloads over
        # https, and stands still beside those over http.
        pages = []
        for tls in (True, False):
            with beside(bed, 4, tls=tls):
                pages += [page(bed, f"turn{number}-{tls}", tls=True) for number in range(2)]
    assert all(one.whole for one in pages), pages
    assert sum(one.seconds for one in pages) < 52, pages


@pytest.mark.parametrize(
    ("rtt", "peers", "theirs"),
    [
        ("300ms", [REMOTE_NAME, OTHER], 1_500_000),
        pytest.param("1500ms", [REMOTE_NAME, OTHER], 1_500_000, marks=pytest.mark.long),
        ("300ms", ["*.example"], 750_000),
    ],
    ids=["streams of the pipe", "connections", "a pattern"],
)
def test_each_remote_of_a_ground_shares_a_link_of_its_own(
    rtt: str,
    peers: list[str],
    theirs: int,
    root_bed: None,  # noqa: ARG001 - order of set-up
    tmp_path: Path,
) -> None:
    """The emulated link is as fast as both stated links together, with room for the headers. The second remote reports
    the rate of its own file."""
    stated = {"rtt": rtt, "down": "1500kbit", "up": "500kbit"}
    # Behind what each of four clients has saved up.
    seconds, skip_s = 18, 9
    second = {"down": f"{theirs}bit"}
    with neighbour_bed(tmp_path, "fair", link=LINK, stated=stated, second_remote=second, peers=peers) as bed:
        bulk = {"do": "bulk", "host": BULK, "to": SERVERS[BULK], "seconds": seconds, "skip_s": skip_s}
        ways = [(CLIENTS[0], 6, True), (CLIENTS[1], 1, True), (OTHER_CLIENTS[0], 2, False), (OTHER_CLIENTS[1], 1, True)]
        jobs = [bulk | {"from": address, "streams": streams, "tls": tls} for address, streams, tls in ways]
        got = [one["bytes"] for one in bed.load(*jobs)]

        def names() -> set[str]:
            requests = bed.running.ground.requests()
            return {one["remote"] for one in requests if one.get("hop") == "tunnel" and "www" in one["authority"]}

        wait_for("the lines of all remotes", lambda: names() == set(peers), timeout_s=30)
    for mine, rate in ((got[:2], 1_500_000), (got[2:], theirs)):
        limit = rate / 8 * (seconds - skip_s)
        assert 0.55 * limit < sum(mine) < limit, got
        assert min(mine) > 0.33 * sum(mine), got


def _shares_of(bed: NeighbourBed) -> Path:
    """Returns the file of the filter that shares the link at the ground."""
    return bed.running.ground.state / "rendered" / "ecds" / "link-share.yaml"
