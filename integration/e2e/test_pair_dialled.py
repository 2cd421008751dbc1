"""A pair with `split.dial: ground`. No connection can be opened to the ground, which opens all of them itself."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from e2e.bed import made_to_order
from e2e.pair_bed import GONE, LAB, LISTED, RTT_S, TODAY, PairBed, standing_pair
from harness.clients import Curl
from harness.lab.contenders.base import rules
from harness.lab.line import FAR, NEAR, NEAR_HOME
from harness.pair import PIPE_PORT
from harness.waiting import wait_for

CLOSED = """chain closed {
    type filter hook input priority filter; policy accept;
    iifname != "lo" tcp flags & (syn | ack) == syn drop
}"""
"""A firewall, or a carrier's address translation: only responses to outgoing traffic get in."""
RETRY_S = 90.0
"""Envoy dials again every 10 s, but after failures only every 30 s. A busy machine gets one more try."""


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:  # noqa: ARG001 - order of set-up
    with (
        standing_pair(tmp_path_factory.mktemp("dialled"), dial="ground", restart_wait="4s") as standing,
        rules(standing.line.gateway, CLOSED),
    ):
        until_dialled(standing)
        yield standing


def tunnels(bed: PairBed) -> float:
    """Returns the number of open tunnels, by the ground's count."""
    return bed.pair.ground.metrics()['envoy_cluster_upstream_cx_active{envoy_cluster_name="pipe"}']


def accepted(bed: PairBed) -> float:
    """Returns the number of tunnels that the remote has accepted so far."""
    metrics = bed.pair.remote.metrics()
    return sum(value for name, value in metrics.items() if "reverse_tunnel_handshake_accepted" in name)


def until_dialled(bed: PairBed) -> None:
    wait_for("tunnels", lambda: tunnels(bed) >= 4, timeout_s=60, interval_s=0.3)
    serves(bed)


def serves(bed: PairBed) -> None:
    def one() -> bool:
        return bed.curl.get(f"http://{LAB}/again.bin", timeout_s=10).status == 200

    wait_for("an answer", one, timeout_s=RETRY_S, interval_s=0.5)


def takes_another_envoy(config: Path) -> None:
    """Makes a change that requires another Envoy process."""
    config.write_text(config.read_text() + 'limits: {"connections": 40000}\n')


def test_nobody_reaches_the_ground_and_everything_is_served(bed: PairBed) -> None:
    knock = Curl(bed.folder, bed.line.near, "--insecure").get(f"https://{FAR}:{PIPE_PORT}/", timeout_s=3)
    assert (knock.status, bool(knock.problem)) == (0, True), knock
    url = f"http://{LAB}/plain.bin"
    answer = bed.curl.get(url)
    assert (answer.status, answer.body) == (200, bed.original(url))
    assert not [name for name, _ in answer.headers if name.startswith(("x-longhaul", "x-envoy", "via"))]
    # curl trusts only the origins' authority, so this connection ended at an origin.
    secure = bed.curl.get(f"https://{TODAY}/x.bin", "--resolve", f"{TODAY}:443:{bed.address(TODAY)}")
    assert secure.status == 200, secure
    assert bed.dig(TODAY, "AAAA").addresses() == ["2001:db8::5"]
    assert bed.dig(LISTED, "A").addresses() == [NEAR_HOME]
    assert bed.curl.get(f"https://{LISTED}/page.html").status == 200
    assert b"could not be resolved" in bed.curl.get(f"http://{GONE}/", "--resolve", f"{GONE}:80:{NEAR_HOME}").body


def test_a_hundred_at_once_uploads_and_large_answers_open_nothing(bed: PairBed) -> None:
    serves(bed)
    before = bed.pair.connections("pipe")["total"]
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda n: bed.curl.get(f"http://{LAB}/many-{n}.bin", timeout_s=60), range(100)))
    assert [one.status for one in answers] == [200] * 100
    names = [f"h{number}.example.org" for number in range(12)]
    with ThreadPoolExecutor(12) as pool:
        secure = pool.map(
            lambda name: bed.curl.get(f"https://{name}/x.bin", "--resolve", f"{name}:443:{bed.address(name)}"), names
        )
        assert [one.status for one in secure] == [200] * 12
    bed.downloads(3_000_000)
    bed.uploads(300_000)
    assert bed.pair.connections("pipe")["total"] == before


def test_headers_are_compressed_in_tunnels_too(bed: PairBed) -> None:
    serves(bed)
    bed.packs_headers()


def test_bytes_in_a_tunnel_cannot_be_read_on_the_way(bed: PairBed) -> None:
    """Envoy's tunnels are bare sockets once the ground has authenticated."""
    serves(bed)
    listener = subprocess.Popen(
        bed.line.near.inside(["timeout", "120", "python3", "-c", SNIFFER, "sky0"]),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert listener.stdin
    assert listener.stdout
    try:
        assert listener.stdout.readline() == "listening\n"
        assert bed.curl.get(f"http://{LAB}/telltale-object.bin", "--header", "X-Secret: telltale").status == 200
        listener.stdin.close()
        seen = listener.stdout.readline().split()
    finally:
        listener.terminate()
        listener.wait()
        listener.stdout.close()
    packets, clear = (int(one) for one in seen)
    assert packets > 0, "the request crossed the link"
    assert clear == 0


SNIFFER = """
import select, socket, sys
raw = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
raw.bind((sys.argv[1], 0))
print("listening", flush=True)
packets = clear = 0
while raw in select.select([raw, sys.stdin], [], [])[0]:
    packet = raw.recv(65536)
    packets += 1; clear += b"telltale" in packet or b"PRI * HTTP/2" in packet
print(packets, clear, flush=True)
"""
"""Counts packets until its input ends and every packet that came before has been examined."""


def test_without_the_pair_s_certificate_nobody_poses_as_the_ground(bed: PairBed) -> None:
    stranger = bed.authority.issue("ground.example.org")
    identity = bed.pair.identity
    before = accepted(bed)
    assert before >= 4
    tunnel = f"https://{NEAR}:{PIPE_PORT}/reverse_connections/request"
    # The remote's own certificate belongs to the pair, but is not a ground's.
    for shown in (
        [],
        ["--cert", str(stranger.cert), "--key", str(stranger.key)],
        ["--cert", identity["cert"], "--key", identity["key"]],
    ):
        answer = Curl(bed.folder, bed.line.gateway, "--insecure", "--http1.1").get(tunnel, *shown, timeout_s=10)
        assert (answer.status, bool(answer.problem)) == (0, True), answer
    assert accepted(bed) == before


def test_chromium_loads_http_and_https_pages(bed: PairBed) -> None:
    bed.load_in_chromium("h2.example.org")


@pytest.mark.parametrize("end", ["ground", pytest.param("remote", marks=pytest.mark.long)])
def test_an_envoy_that_dies_is_dialled_again_and_clients_get_an_error_meanwhile(bed: PairBed, end: str) -> None:
    serves(bed)
    (bed.pair.remote if end == "remote" else bed.pair.ground).quit_envoy()
    answer = bed.curl.get(f"http://{LAB}/gone.bin", timeout_s=20)
    # No listener exists while the remote's Envoy starts again.
    assert answer.status in (0, 200, 503), answer
    if answer.status == 503:
        assert b"the link is down" in answer.body
    serves(bed)
    until_dialled(bed)


@pytest.mark.long
def test_another_envoy_at_either_end_takes_over(bed: PairBed) -> None:
    """A change at the ground loses no request. After a change at the remote, the ground dials again."""
    serves(bed)
    takes_another_envoy(bed.pair.ground.config)
    wait_for("it taken", lambda: "another Envoy takes over" in bed.pair.ground.output(), timeout_s=30)
    for number in range(20):
        assert bed.curl.get(f"http://{LAB}/over-{number}.bin", timeout_s=20).status == 200
    takes_another_envoy(bed.pair.remote.config)
    wait_for("it taken", lambda: "another Envoy takes over" in bed.pair.remote.output(), timeout_s=30)
    serves(bed)


def test_a_ground_that_ends_drains_and_what_is_down_is_said_until_it_is_back(bed: PairBed) -> None:
    serves(bed)
    slow = made_to_order(LAB, body="noise", size=16_000, chunk=1000, pause=250, header="Cache-Control:no-store")

    def is_under_way() -> bool:
        active = 'envoy_http_downstream_rq_active{envoy_http_conn_manager_prefix="edge_http"}'
        return bed.pair.ground.metrics()[active] >= 1

    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(1))
        download = pool.submit(bed.curl.get, slow, timeout_s=60)
        wait_for("the download", is_under_way)
        stack.enter_context(bed.pair.without_ground())
        whole = download.result()
        assert (whole.status, len(whole.body), whole.problem) == (200, 16_000, "")
        bed.is_told(within_s=30)
        wait_for("no more waiting", lambda: bed.is_told(within_s=30) < RTT_S, timeout_s=60, interval_s=0.3)
        wait_for("the word", lambda: "no ground has opened a connection" in bed.pair.remote.output(), timeout_s=30)
    serves(bed)
    wait_for("the word", lambda: "the ground responds again" in bed.pair.remote.output(), timeout_s=30)


@pytest.mark.long
def test_a_remote_goes_past_a_ground_that_has_not_dialled_and_back(tmp_path: Path, root_bed: None) -> None:  # noqa: ARG001 - order of set-up
    with standing_pair(tmp_path, dial="ground", when_down="direct") as standing:
        until_dialled(standing)

        def is_on_the_pipe() -> bool:
            path = f"/{time.monotonic_ns()}.bin"
            answer = standing.curl.get(f"http://{LAB}{path}", timeout_s=20)
            seen = [one.get("path") for one in standing.pair.ground.requests()]
            return answer.status == 200 and path in seen

        wait_for("the pipe in use", is_on_the_pipe, timeout_s=60, interval_s=0.5)
        with standing.pair.without_ground():
            wait_for(
                "the way past it",
                lambda: standing.curl.get(f"http://{LAB}/past.bin", timeout_s=20).status == 200,
                timeout_s=60,
                interval_s=0.5,
            )
        wait_for("the pipe in use", is_on_the_pipe, timeout_s=60, interval_s=0.5)
