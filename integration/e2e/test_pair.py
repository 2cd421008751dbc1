"""A pair over a satellite link: clients' responses, the traffic on the link, and outages."""

from __future__ import annotations

import itertools
import json
import re
import statistics
import subprocess
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from e2e.bed import made_to_order
from e2e.pair_bed import GONE, LAB, LISTED, PLAIN, RTT_S, TODAY, WARM, PairBed, standing_pair
from harness.boxes.pair import PIPE_PORT
from harness.boxes.pep import Pep
from harness.clients.commands import Answer, Curl, DnsAnswer
from harness.delivery.dashboards import has_data, panels, running
from harness.host.artifacts import REPOSITORY, built
from harness.host.usage import processes
from harness.host.waiting import quickest, wait_for
from harness.lab import watches
from harness.lab.line import FAR, INSTANT_RANGE, NEAR_HOME, is_instant
from harness.net.namespaces import Namespace
from harness.net.topology import FORBIDDEN

RTO_MAX = Path("/proc/sys/net/ipv4/tcp_rto_max_ms")

DOCUMENT = REPOSITORY / "envoy-config" / "METRICS.md"


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:  # noqa: ARG001 - order of set-up
    with standing_pair(tmp_path_factory.mktemp("pair"), warm=WARM, restart_wait="60s") as standing:
        yield standing


@pytest.fixture
def warm(bed: PairBed) -> PairBed:
    """The same bed with all warm connections open."""
    bed.until_warm()
    return bed


def test_the_pipe_and_the_configured_connections_are_open_before_the_first_client(warm: PairBed) -> None:
    # The remote itself holds half as many again in use.
    assert warm.pair.connections("warm")["active"] == WARM + WARM // 2
    assert warm.pair.connections("warm")["connect_fail"] == 0


def test_beds_of_experiments_count_the_inotify_instances_of_a_pair(warm: PairBed) -> None:
    ends = (warm.pair.remote, warm.pair.ground)
    held = sum(watches.held(process) for end in ends for process in processes(end.child.process.pid))
    assert 0 < held <= watches.PAIR


def test_the_allocator_of_envoy_keeps_no_caches_of_threads_that_are_gone(warm: PairBed) -> None:
    for end in (warm.pair.remote, warm.pair.ground):
        memory = json.loads(end.admin("/memory"))
        assert int(memory["total_thread_cache"]) < 4 << 20, memory


def test_an_http_object_comes_through_as_the_origin_has_it(warm: PairBed) -> None:
    url = f"http://{LAB}/plain.bin"
    answer = warm.curl.get(url)
    assert (answer.status, answer.body) == (200, warm.original(url))
    assert not [name for name, _ in answer.headers if name.startswith(("x-longhaul", "x-envoy", "via"))]


def test_an_https_page_stays_the_origins_own_and_its_first_byte_takes_two_round_trips(warm: PairBed) -> None:
    address = warm.site.hosts["h1.example.org"]["address"]

    def load() -> float:
        warm.until_warm()
        answer = warm.curl.get("https://h1.example.org/page.html", "--resolve", f"h1.example.org:443:{address}")
        # curl trusts only the origins' authority, so this connection ended at an origin.
        assert answer.status == 200, answer
        return answer.seconds

    seconds = quickest(load, 2.9 * RTT_S)
    assert 2 * RTT_S <= seconds < 2.9 * RTT_S, f"{seconds:.2f} s"


def test_a_browsers_burst_of_connections_waits_for_no_handshake_of_the_pair(warm: PairBed) -> None:
    before = warm.pair.connections("warm")["total"]
    names = [f"h{number}.example.org" for number in range(28)]
    # One process for all requests: to start twenty-eight would take longer than the measured time.
    many = [option for name in names for option in ("--resolve", f"{name}:443:{warm.site.hosts[name]['address']}")]
    many += [word for name in names for word in (f"https://{name}/x.bin", "--output", "/dev/null")]
    command = ["curl", "--silent", "--show-error", "--parallel", "--parallel-immediate", "--parallel-max", "28"]
    command += ["--cacert", str(warm.authority.files.cert), "--range", "0-99"]
    command += ["--write-out", "%{response_code} %{time_starttransfer}\n", *many]

    def median_s() -> float:
        warm.until_warm()
        done = subprocess.run(warm.line.clients.inside(command), capture_output=True, text=True, timeout=60, check=True)
        answers = [line.split() for line in done.stdout.splitlines()]
        assert len(answers) == 28
        assert {status for status, _ in answers} <= {"200", "206"}
        return statistics.median(float(one) for _, one in answers)

    # On a new connection it would take four round trips and more.
    assert quickest(median_s, 3.4 * RTT_S) < 3.4 * RTT_S
    assert warm.pair.connections("warm")["total"] > before, "what was taken is made up for"


def test_requests_in_a_row_open_nothing_over_the_link(warm: PairBed) -> None:
    warm.curl.get(f"http://{LAB}/before.bin")
    pipe = warm.pair.connections("pipe")["total"]
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda n: warm.curl.get(f"http://{LAB}/many-{n}.bin"), range(100)))
    assert [one.status for one in answers] == [200] * 100
    assert warm.pair.connections("pipe")["total"] == pipe


def test_headers_cross_the_link_in_a_fraction_of_their_bytes_once_they_repeat(warm: PairBed) -> None:
    for number in range(5):
        warm.curl.get(f"http://{LAB}/first-{number}.bin")
    before = warm.pair.packed()
    for number in range(10):
        answer = warm.curl.get(f"http://{LAB}/again-{number}.bin")
        assert answer.status == 200, answer
        assert not [name for name, _ in answer.headers if name.startswith("x-longhaul")]
    after = warm.pair.packed()
    plain, packed = (after[key] - before[key] for key in ("plain", "packed"))
    assert plain > 10 * 100, "requests of some hundred bytes were packed"
    assert packed < plain / 5, f"{plain:.0f} bytes became {packed:.0f}"


@pytest.mark.parametrize("authority", [f"{LAB}:8080", f"{LAB}:22"])
def test_the_filters_of_the_ground_see_requests_with_compressed_headers(warm: PairBed, authority: str) -> None:
    for number in range(3):
        assert warm.curl.get(f"http://{LAB}/port-{number}.bin").status == 200
    before = warm.pair.packed()
    answer = warm.curl.get(f"http://{LAB}/port.bin", "--header", f"Host: {authority}")
    after = warm.pair.packed()
    assert after["packed"] > before["packed"], "the headers of this request were compressed"
    # url-rewrite says this. The guard behind it would say that the port may not be reached.
    assert (answer.status, answer.body) == (403, b"the port is not one of those this proxy serves\n"), answer


def test_metrics_of_header_compression_are_documented_and_there_at_both_ends(warm: PairBed) -> None:
    assert warm.curl.get(f"http://{LAB}/counted.bin").status == 200
    documented = re.findall(r"^\| `(longhaul_header_compression_\w+)` \|([^|]*)\|", DOCUMENT.read_text(), re.MULTILINE)
    rows = dict(documented)
    for end in (warm.pair.remote, warm.pair.ground):
        live = [name for name in end.metrics() if name.startswith("longhaul_header_compression_")]
        # METRICS.md has the counter that each native filter has.
        live = [name for name in live if not name.startswith("longhaul_header_compression_panics_total")]
        assert {name.split("{")[0] for name in live} == rows.keys()
        for name in live:
            assert ("reason=" in name) == ("reason" in rows[name.split("{")[0]]), name


def status(end: Pep, where: Namespace) -> dict[str, Any]:
    line = where.inside([str(built("longhaul")), "status", "--state", str(end.state), "--json"])
    done = subprocess.run(line, capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_the_status_of_either_end_says_what_is_open_and_what_headers_shrank_to(warm: PairBed) -> None:
    for number in range(5):
        assert warm.curl.get(f"http://{LAB}/status-{number}.bin").status == 200
    near = status(warm.pair.remote, warm.line.near)
    assert (near["role"], near["pair"]["up"]) == ("remote", True), near
    # Connections that earlier bursts left over stay open. The ones that are held in use are not counted.
    assert WARM <= near["pair"]["warm"] <= warm.pair.connections("warm")["active"] - WARM // 2, near
    far = status(warm.pair.ground, warm.line.gateway)
    assert (far["role"], far["pair"]["up"]) == ("ground", True), far
    for end in (near, far):
        assert end["problems"] == []
        assert end["pair"]["pipe"] >= 1
        assert 0 < end["pair"]["headers"]["ratio"] < 1


def test_a_ground_counts_the_requests_of_clients_and_not_those_of_the_pair(warm: PairBed) -> None:
    def counted() -> tuple[int, dict[str, int]]:
        traffic = status(warm.pair.ground, warm.line.gateway)["traffic"]
        return traffic["clients"]["requests"], traffic["pages"]["refused"]

    def checks() -> float:
        return warm.pair.remote.metrics()['envoy_cluster_health_check_attempt{envoy_cluster_name="pipe"}']

    requests, refused = counted()
    begin = checks()
    for number in range(4):
        assert warm.curl.get(f"http://{LAB}/counted-{number}.bin").status == 200
        assert warm.curl.get(f"https://{LAB}/counted-{number}.bin").status == 200
    assert warm.dig("counted.example.org", "A").status in {"NOERROR", "NXDOMAIN"}
    wait_for("two health checks", lambda: checks() >= begin + 2, timeout_s=30, interval_s=0.2)
    assert counted() == (requests + 4, refused)


def test_a_page_appears_once_and_at_the_remote_alone(warm: PairBed) -> None:
    def pages(where: Namespace) -> list[dict[str, Any]]:
        return json.loads(where.run("curl", "-s", "http://127.0.0.1:9900/status.json").stdout)["last_pages"]

    before = len(pages(warm.line.near))
    assert warm.curl.get(f"http://{LAB}/_/answer?host={LAB}").status == 200
    wait_for("the page", lambda: len(pages(warm.line.near)) == before + 1, timeout_s=10, interval_s=0.2)
    last = pages(warm.line.near)[0]
    assert (last["outcome"], last["status"], last["first_byte_ms"] >= RTT_S * 1000) == ("passed_on", 200, True), last
    assert pages(warm.line.gateway) == []


SCRAPES = """scrape_configs:
- job_name: longhaul
  static_configs: [ { targets: ["127.0.0.1:9153"], labels: { instance: box } } ]
"""


@pytest.mark.parametrize("end", ["remote", "ground"])
def test_every_query_of_the_dashboard_for_this_end_has_data(warm: PairBed, end: str, folder: Path) -> None:
    where = warm.line.near if end == "remote" else warm.line.gateway
    queries = [one for one in panels() if one.description.startswith(f"At a {end}:")]
    assert len(queries) >= 2
    with running(folder, where, SCRAPES) as prometheus:
        prometheus.wait_for_scrapes("longhaul", 3, lambda: warm.downloads(1000))
        for one in queries:
            has_data(prometheus, one)


def test_names_are_asked_over_the_link_once_and_every_type_is_the_truth(warm: PairBed) -> None:
    assert warm.dig(TODAY, "A").addresses() == [warm.site.hosts[TODAY]["address"]]
    assert warm.dig(TODAY, "AAAA").addresses() == ["2001:db8::5"]
    assert warm.dig(TODAY, "HTTPS").answer
    assert warm.dig("nothing.example.org", "A").status == "NXDOMAIN"
    again = quickest(lambda: warm.dig(TODAY, "A").seconds, RTT_S)
    assert again < RTT_S, "the second answer comes from the near end"


def test_listed_names_are_answered_at_once_and_their_pages_come(warm: PairBed) -> None:
    # The name is known after the first lookup, so each attempt has another one below it.
    names = (f"{uuid.uuid4().hex}.{LISTED}" for _ in itertools.count())
    answers: list[DnsAnswer] = []

    def first_lookups_s() -> float:
        name = next(names)
        answers[:] = [warm.dig(name, kind) for kind in ("A", "AAAA")]
        return max(answer.seconds for answer in answers)

    assert quickest(first_lookups_s, RTT_S) < RTT_S, "nothing is waited for"
    [[made_up], none] = [answer.addresses() for answer in answers]
    assert (is_instant(made_up), none) == (True, [])
    # The name gives the destination, whatever the address.
    for scheme, port in (("http", 80), ("https", 443)):
        answer = warm.curl.get(f"{scheme}://{LISTED}/page.html", "--resolve", f"{LISTED}:{port}:{made_up}")
        assert (answer.status, answer.remote.split(":")[0]) == (200, made_up), answer
    wait_for("the truth", lambda: warm.dig(LISTED, "A").addresses() == [warm.site.hosts[LISTED]["address"]])
    assert warm.curl.get(f"https://{LISTED}/page.html").status == 200


def test_a_listed_name_that_does_not_exist_is_said_so_once_that_is_known(warm: PairBed) -> None:
    first = warm.dig(GONE, "A")
    assert (first.status, [is_instant(one) for one in first.addresses()]) == ("NOERROR", [True])
    assert b"could not be resolved" in warm.curl.get(f"http://{GONE}/", "--resolve", f"{GONE}:80:{NEAR_HOME}").body
    wait_for("the truth", lambda: warm.dig(GONE, "A").status == "NXDOMAIN", interval_s=0.2)


def test_nothing_but_web_pages_reaches_an_address_of_a_name_that_is_not_known_yet(warm: PairBed) -> None:
    address = str(INSTANT_RANGE[77])
    before = len(warm.origins.events("connect"))
    for program in (f"exec 3<>/dev/tcp/{address}/22", f"exec 3<>/dev/udp/{address}/443; echo >&3; read -t 3 -u 3"):
        ended = warm.line.clients.run("timeout", "3", "bash", "-c", program, check=False)
        assert "refused" in ended.stderr, ended
    nameless = warm.curl.get(f"https://{address}/", timeout_s=10)
    assert (nameless.status, len(warm.origins.events("connect"))) == (0, before), nameless


@pytest.mark.parametrize("name", sorted(FORBIDDEN))
def test_nobody_is_taken_where_nobody_may_go(warm: PairBed, name: str) -> None:
    connects = len(warm.origins.events("connect"))
    # The client gives the destination address, but the ground resolves the name itself.
    answer = warm.curl.get(f"http://{name}/", "--resolve", f"{name}:80:203.0.113.77")
    # The remote's own address is public, and leads back to the remote: a loop.
    assert answer.status in ({508} if name == "self-lan.example.org" else {403, 502}), answer
    assert len(warm.origins.events("connect")) == connects


def test_names_that_no_public_resolver_has_go_to_the_address_that_the_client_dialled(warm: PairBed) -> None:
    def connects(name: str, address: str) -> int:
        before = len(warm.origins.events("connect"))
        answer = warm.curl.get(f"https://{name}/", "--resolve", f"{name}:443:{address}")
        # The origin has no certificate for such a name, and says so.
        assert ("alert internal error" in answer.problem) == (len(warm.origins.events("connect")) > before), answer
        return len(warm.origins.events("connect")) - before

    for name in ("intranet", "printer.LOCAL", "box.home.arpa"):
        assert connects(name, warm.address(LAB)) == 1, name
    # A public name is resolved by the ground, and one at the proxy's own address as well.
    assert connects("nobody.example.org", warm.address(LAB)) == 0
    assert connects("intranet", NEAR_HOME) == 0
    assert connects("intranet", FORBIDDEN["private.example.org"]) == 0


def test_http_without_a_host_goes_to_the_address_that_the_client_dialled(warm: PairBed) -> None:
    address = warm.address(LAB)
    connect = f"import socket; s = socket.create_connection(({address!r}, 80), 20)"
    warm.line.clients.run("python3", "-c", rf"{connect}; s.sendall(b'GET /lost HTTP/1.0\r\n\r\n'); s.recv(100)")
    assert [one["target"] for one in warm.origins.requests(host=f"{address}:80")] == ["/lost"]


def test_connections_to_the_remote_itself_end_there(warm: PairBed) -> None:
    before = warm.pair.remote.metrics()
    tls = Curl(warm.folder, warm.line.clients, "--insecure").get(f"https://{NEAR_HOME}/")
    assert (tls.status, bool(tls.problem)) == (0, True), tls
    raw = Curl(warm.folder, warm.line.clients).get(f"https://{NEAR_HOME}:80/", timeout_s=10)
    assert (raw.status, raw.body) == (0, b""), raw
    after = warm.pair.remote.metrics()
    for chain in ("nameless", "other"):
        key = f'envoy_tcp_downstream_cx_total{{envoy_tcp_prefix="{chain}"}}'
        assert after.get(key, 0) == before.get(key, 0), f"{chain}: it went over the link"


def test_every_client_of_a_server_without_tls_gets_the_alert_that_says_so(warm: PairBed) -> None:
    # The alert was lost in most attempts where clients have shares. Browsers then try once more.
    answers = [warm.curl.get(f"https://{PLAIN}/") for _ in range(10)]
    assert [answer.problem for answer in answers if "unrecognized name" not in answer.problem] == []
    assert min(answer.seconds for answer in answers) >= RTT_S, "they crossed the link"


def test_a_large_download_and_an_upload_come_through_whole(warm: PairBed) -> None:
    warm.downloads(5_000_000)
    warm.uploads(700_000)
    assert any(one["target"] == "/_/echo" for one in warm.origins.requests(host=LAB))


def test_without_the_pairs_own_certificate_nobody_gets_in(warm: PairBed) -> None:
    stranger = warm.authority.issue("stranger.example")
    for options in ([], ["--cert", str(stranger.cert), "--key", str(stranger.key)]):
        answer = Curl(warm.folder, warm.line.near, "--insecure", "--http2").get(
            f"https://{FAR}:{PIPE_PORT}/", "--header", f"Host: {LAB}", *options
        )
        assert answer.status == 0, answer
        assert answer.problem


def test_connections_that_were_reset_unused_reach_no_client(warm: PairBed) -> None:
    def page(number: int) -> Answer:
        return warm.curl.get(f"https://h{number}.example.org/page.html", timeout_s=30)

    seen = len(warm.pair.remote.output())
    # As a firewall resets what it has forgotten. Envoy notices that only where it reads.
    ended = warm.line.near.run("ss", "-KHtn", "state", "established", "dport", "=", f":{PIPE_PORT}").stdout
    assert len(ended.splitlines()) >= WARM
    notice = "connections to the ground are gone"
    wait_for("the notice", lambda: notice in warm.pair.remote.output()[seen:], timeout_s=5)
    with ThreadPoolExecutor(12) as pool:
        pages = list(pool.map(page, range(12)))
    assert [one.status for one in pages] == [200] * 12, pages


@pytest.mark.parametrize("seconds", [5, *(pytest.param(more, marks=pytest.mark.long) for more in (15, 40))])
def test_a_download_outlives_an_outage(warm: PairBed, seconds: int) -> None:
    def in_the_middle() -> None:
        wait_for("the download's start", lambda: warm.origins.requests(host=LAB))
        assert warm.line.link
        warm.line.link.outage(f"{seconds}s drop")

    warm.origins.forget()
    with ThreadPoolExecutor(1) as pool:
        outage = pool.submit(in_the_middle)
        answer = warm.curl.get(made_to_order(LAB, size=4_000_000), timeout_s=60 + 2 * seconds)
        outage.result()
    assert (answer.status, len(answer.body), answer.problem) == (200, 4_000_000, "")


@pytest.mark.long
@pytest.mark.skipif(not RTO_MAX.exists(), reason="Linux before 6.15 bounds no wait before a retransmission")
def test_after_an_outage_nobody_waits_for_the_doubled_timers_of_old_connections(warm: PairBed) -> None:
    assert warm.curl.get(made_to_order(LAB, size=1000)).status == 200
    assert warm.line.link
    warm.line.link.outage("40s drop")
    with ThreadPoolExecutor(8) as pool:
        # Their packets are lost, so the timers double.
        urls = [made_to_order(LAB, size=1001 + number) for number in range(8)]
        meanwhile = [pool.submit(warm.curl.get, url, timeout_s=90) for url in urls]
        time.sleep(40)
        began = time.monotonic()
        assert warm.curl.get(made_to_order(LAB, size=999), timeout_s=90).status == 200
        # The bound of this link is 1 s. Without one, this took up to 27 s.
        assert time.monotonic() - began < 5
        assert [one.result().status for one in meanwhile] == [200] * 8


def test_chromium_loads_http_and_https_pages_through_the_pair(warm: PairBed) -> None:
    warm.load_in_chromium("h2.example.org")


def in_flight(
    warm: PairBed, mark: str, **held_back: str | int
) -> tuple[ThreadPoolExecutor, list[Future[Answer]], list[Future[Answer]]]:
    """Starts sixteen clients with a GET and four with a body. The origin has all their requests and responds later."""
    pool = ThreadPoolExecutor(20)
    slow = made_to_order(LAB, body="noise", **held_back)
    asking = [pool.submit(warm.curl.get, f"{slow}&header=X-Of:{mark}-get-{n}", timeout_s=60) for n in range(16)]
    sending = [
        pool.submit(warm.curl.get, f"{slow}&header=X-Of:{mark}-post-{n}", "--data", "once", timeout_s=60)
        for n in range(4)
    ]
    wait_for("all of them at the origin", lambda: len(seen(warm, mark)) == 20, timeout_s=30)
    return pool, asking, sending


def seen(warm: PairBed, mark: str) -> list[str]:
    """Returns the requests of `in_flight` that reached the origin."""
    return [one["target"] for one in warm.origins.requests(host=LAB) if f"X-Of:{mark}-" in one["target"]]


def test_requests_while_the_grounds_envoy_dies_get_a_response_and_none_is_sent_twice(warm: PairBed) -> None:
    before = again(warm)
    pool, asking, sending = in_flight(warm, "killed", until="killed")
    with pool:
        warm.kill_ground()
        # This request finds no Envoy. The remote knows that none of its bytes have left, so a retry is safe.
        late = pool.submit(
            warm.curl.get, f"{made_to_order(LAB)}header=X-Of:killed-late", "--data", "once", timeout_s=60
        )
        # Nothing of a TLS connection has left, either. This one has no server name, so the client gives the address.
        nameless = pool.submit(
            Curl(warm.folder, warm.line.clients, "--insecure").get, f"https://{warm.address(LAB)}/x.bin", timeout_s=60
        )
        assert {one.result().status for one in sending} == {502}
        assert warm.original(f"http://{LAB}/_/open?gate=killed") == b""
        assert [one.result().status for one in asking] == [200] * 16
        # The origin has no certificate for a client without a server name. Its alert shows that it was reached.
        assert "alert internal error" in nameless.result().problem, nameless.result()
        assert late.result().status == 200
    for which in [*(f"post-{n}" for n in range(4)), "late"]:
        assert len([one for one in seen(warm, "killed") if one.endswith(which)]) == 1, which
    assert again(warm) >= before + 16


def again(warm: PairBed) -> float:
    """Returns the number of requests that the remote retried, as METRICS.md counts them."""
    return warm.pair.remote.metrics()['envoy_cluster_upstream_rq_retry{envoy_cluster_name="pipe"}']


def test_requests_while_the_ground_is_stopped_and_started_get_a_response(warm: PairBed) -> None:
    pool, asking, sending = in_flight(warm, "restarted", wait=3000)
    with pool:
        with warm.pair.without_ground():
            late = pool.submit(warm.curl.get, f"http://{LAB}/late.bin", timeout_s=60)
        assert [one.result().status for one in [*asking, late]] == [200] * 17
        # An Envoy that is stopped lets requests finish, as far as its time allows.
        assert {one.result().status for one in sending} <= {200, 502}
    for number in range(4):
        assert len([one for one in seen(warm, "restarted") if one.endswith(f"post-{number}")]) == 1


@pytest.mark.long
def test_a_ground_that_stays_away_is_said_clearly_and_then_soon_and_one_that_is_back_is_used_again(
    warm: PairBed,
) -> None:
    with warm.pair.without_ground():
        # The first client waits as long as the remote allows the ground for a restart.
        warm.is_told(within_s=120)
        wait_for("no more waiting", lambda: warm.is_told(within_s=120) < RTT_S, timeout_s=120, interval_s=0.5)
    wait_for(
        "the pair",
        lambda: warm.curl.get(f"http://{LAB}/back.bin", timeout_s=10).status == 200,
        timeout_s=60,
        interval_s=0.5,
    )
    wait_for("warm connections", lambda: warm.pair.connections("warm")["active"] >= WARM, timeout_s=60, interval_s=0.5)
