"""A remote with two links: a download outlives the loss of the quick one, and everything goes back when it returns."""

from __future__ import annotations

import os
import re
import signal
import statistics
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from harness.boxes.pair import PIPE_PORT
from harness.boxes.pep import command
from harness.host.processes import Child, of_program
from harness.host.waiting import wait_for
from harness.lab.contenders.base import rules
from harness.lab.two_links import (
    GEO,
    GROUND,
    LTE,
    ORIGIN,
    OTHER,
    TwoLinksBed,
    crossed,
    download,
    load_page,
    longest_gap,
    now_s,
    resolved,
    two_links,
    watch_links,
)

CUT_S = 8
STALL_S = 4.0
"""A second, two round trips of the quick link and one of the other are the goal. This machine may be busy."""
SIZE = 4_000_000
IDLE_BYTES = 20_000
ECHO_PORT = 8444
ECHO = f"""
import socket
listener = socket.socket(proto=socket.IPPROTO_MPTCP)
listener.bind(("{GROUND}", {ECHO_PORT}))
listener.listen()
connection, _ = listener.accept()
while got := connection.recv(1):
    connection.sendall(got)
"""
"""A server of Multipath TCP beside the ground."""
SILENT = f"""
import pathlib, socket, sys, time
connection = socket.socket(proto=socket.IPPROTO_MPTCP)
connection.connect(("{GROUND}", {ECHO_PORT}))
print("open", flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)
connection.sendall(b".")
while connection.recv(1):
    pass
"""
"""A client that is silent until a file exists."""

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoLinksBed]:  # noqa: ARG001 - order of set-up
    with two_links(tmp_path_factory.mktemp("two")) as standing:
        yield standing


@pytest.mark.usefixtures("root_bed")
def test_a_connection_from_before_the_first_endpoint_gets_a_subflow_of_each_link(tmp_path: Path) -> None:
    """The kernel alone gives a connection one link for life if its first response comes after the first endpoint."""
    with two_links(tmp_path, watched=False) as bed:
        near, go = bed.line.near, tmp_path / "go"
        server = Child(bed.line.gateway.inside([sys.executable, "-c", ECHO]), tmp_path / "echo.log")
        with server, Child(near.inside([sys.executable, "-c", SILENT, go]), tmp_path / "silent.log") as client:
            client.wait_for_output("open")
            with watch_links(bed.folder, bed.line, bed.pair):
                for one in (LTE, GEO):
                    bed.until(one.name, alive=True)
                go.touch()

                def devices() -> str:
                    return near.run("ss", "-tnH", "state", "established", f"dport = :{ECHO_PORT}").stdout

                wait_for("a subflow of the standby", lambda: GEO.device in devices(), timeout_s=10, interval_s=0.2)


def test_a_download_outlives_the_loss_of_its_link_and_pages_go_on(bed: TwoLinksBed) -> None:
    before = crossed(bed, "geo")
    with ThreadPoolExecutor(2) as pool:
        url = download(SIZE, scheme="https")
        parts = pool.submit(bed.curl.stream, url, *resolved(bed, ORIGIN, 443), timeout_s=60)
        wait_for("bytes over the quick link", lambda: crossed(bed, "lte") > SIZE // 8, timeout_s=20, interval_s=0.1)
        assert crossed(bed, "geo") - before < IDLE_BYTES, "the standby carries nothing while the quick link works"
        bed.line.emulated["lte"].outage(f"{CUT_S}s drop")
        bed.until("lte", alive=False, timeout_s=5)
        page = bed.curl.get(f"http://{OTHER}/page.html", *resolved(bed, OTHER, 80), timeout_s=CUT_S)
        assert page.status == 200, page
        whole = parts.result()
    assert sum(len(part) for _, part in whole) == SIZE
    assert longest_gap(whole) < STALL_S
    assert crossed(bed, "geo") - before > SIZE // 8
    bed.until("lte", alive=True)
    back = crossed(bed, "geo")
    answer = bed.curl.get(download(SIZE // 4, scheme="https"), *resolved(bed, ORIGIN, 443), timeout_s=30)
    assert len(answer.body) == SIZE // 4
    assert crossed(bed, "geo") - back < IDLE_BYTES, "everything has gone back"
    assert bed.watch
    said = bed.watch.output()
    assert "the link lte is down: no sign of life on lte0" in said
    assert "the link lte works again after" in said
    problems = (bed.pair.remote.output() + bed.pair.ground.output()).split("problem (")[1:]
    # The bed has packet rules of its own.
    of_the_pair = [one for one in problems if not one.startswith("rules_gone")]
    assert not of_the_pair, "a cut of one link is no problem of the pair"


def _paths(bed: TwoLinksBed) -> list[tuple[str, int]]:
    """Congestion control and window in packets of each path over the quick link, as the ground has them."""
    address = bed.states()["lte"]["address"]
    shown = bed.line.gateway.run("ss", "-tniH", "state", "established", f"dst = {address}").stdout
    return [(name, int(window)) for name, window in re.findall(r"(bbr|reno) .*?\bcwnd:(\d+)", shown)]


def test_a_quiet_connection_keeps_its_window(bed: TwoLinksBed) -> None:
    """The kernel does not tell BBR that the application has nothing to send, so BBR forgets the rate of the link."""
    wait_for("the first report", bed.states, timeout_s=20, interval_s=0.2)
    with ThreadPoolExecutor(1) as pool:
        download_of = pool.submit(bed.curl.get, download(SIZE), *resolved(bed, ORIGIN, 80), timeout_s=60)
        wait_for("BBR at work", lambda: "bbr" in [name for name, _ in _paths(bed)], timeout_s=20, interval_s=0.1)
        assert len(download_of.result().body) == SIZE
    widest = max(window for _, window in _paths(bed))
    assert widest > 50, "8 Mbit/s and 80 ms are 55 packets"
    for number in range(25):
        answer = bed.curl.get(f"http://{OTHER}/quiet-{number}.bin?size=10", *resolved(bed, OTHER, 80))
        assert answer.status == 200, answer
    held = _paths(bed)
    assert "bbr" not in [name for name, _ in held], "no path has anything to send"
    assert max(window for _, window in held) >= widest // 2, "without the library it is 6"


def test_new_requests_pass_soon_when_a_ground_has_forgotten_all_connections(bed: TwoLinksBed) -> None:
    """Also while the kernel still closes the subflow that a cut ended, and does not notice that the others have gone
    (Linux 6.18)."""
    assert bed.curl.get(download(1000), *resolved(bed, ORIGIN, 80)).status == 200
    # As a ground does that was switched off and on again.
    ended = bed.line.gateway.run("ss", "-KHtn", "state", "established", "sport", "=", f":{PIPE_PORT}").stdout
    assert len(ended.splitlines()) >= 2, ended
    for scheme, port in (("http", 80), ("https", 443)):
        begun_s = now_s()
        wait_for(
            f"a response over {scheme}",
            lambda scheme=scheme, port=port: (
                # One that was under way may wait until the kernel gives its connection up.
                bed.curl.get(download(1000, scheme=scheme), *resolved(bed, ORIGIN, port), timeout_s=3).status == 200
            ),
            timeout_s=60,
        )
        assert now_s() - begun_s < 17, scheme
    assert "lost all their paths" in bed.pair.remote.output()
    bed.until("geo", alive=True)


def test_the_end_of_the_watch_undoes_its_routes_and_rules_and_cuts_no_connection(bed: TwoLinksBed) -> None:
    near = bed.line.near
    assert "lookup 4180" in near.ip("rule", "show")
    assert bed.endpoints().count("dev ") == 2
    opened = bed.pair.connections("pipe")["total"]
    assert bed.watch
    bed.watch.process.terminate()
    assert bed.watch.process.wait(10) == 0
    assert bed.endpoints().split("dev ")[1:] == ["lte0 \n"], "open connections need it"
    assert "418" not in near.ip("rule", "show")
    assert "table 418" not in near.ip("route", "show", "table", "all")
    assert bed.curl.get(f"http://{OTHER}/again.html", *resolved(bed, OTHER, 80)).status == 200
    assert bed.pair.connections("pipe")["total"] == opened


@pytest.mark.usefixtures("root_bed")
def test_a_download_by_ipv6_outlives_the_loss_of_its_link(tmp_path: Path) -> None:
    with two_links(tmp_path, ipv6=True) as bed, ThreadPoolExecutor(1) as pool:
        assert "2001:db8:41::2 id 180 subflow dev lte0" in bed.endpoints()
        before = crossed(bed, "geo")
        url = download(SIZE, scheme="https")
        parts = pool.submit(bed.curl.stream, url, *resolved(bed, ORIGIN, 443), timeout_s=60)
        wait_for("bytes over the quick link", lambda: crossed(bed, "lte") > SIZE // 8, timeout_s=20, interval_s=0.1)
        assert crossed(bed, "geo") - before < IDLE_BYTES
        bed.line.emulated["lte"].outage(f"{CUT_S}s drop")
        bed.until("lte", alive=False, timeout_s=5)
        whole = parts.result()
        assert sum(len(part) for _, part in whole) == SIZE
        assert longest_gap(whole) < STALL_S
        assert crossed(bed, "geo") - before > SIZE // 8
        bed.until("lte", alive=True)
        assert "fwmark 0 iif lo lookup 4180" in bed.line.near.ip("-6", "rule", "show"), (
            "packets of clients keep the way of their address"
        )
        assert bed.watch
        bed.watch.process.terminate()
        assert bed.watch.process.wait(10) == 0
        assert "418" not in bed.line.near.ip("-6", "rule", "show")
        assert "table 418" not in bed.line.near.ip("-6", "route", "show", "table", "all")


def _hindered(bed: TwoLinksBed, name: str) -> str:
    """The fault of Multipath TCP over a link. Empty also before the first report."""
    return bed.states().get(name, {}).get("hindered") or ""


def _status(bed: TwoLinksBed) -> str:
    """The status of the remote, without the breaks of a terminal."""
    return " ".join(command("status", "--state", bed.pair.remote.state).stdout.split())


STRIP = """chain strip {
 type filter hook output priority 0
 oifname geo0 tcp option mptcp exists reset tcp option mptcp
}"""
"""A firewall on the standby that removes the options of Multipath TCP."""
SMALL_MTU = 1280
NAMED_S = 30
"""A fault is named after 15 s. A busy machine takes longer."""


@pytest.mark.usefixtures("root_bed")
def test_a_ground_without_multipath_tcp_is_named_before_a_link_fails(tmp_path: Path) -> None:
    with two_links(tmp_path, far_multipath="off") as bed:
        bed.until("lte", alive=True)
        wait_for("the fault", lambda: "plain TCP" in _hindered(bed, "lte"), timeout_s=NAMED_S, interval_s=0.5)
        assert not _hindered(bed, "geo"), "nothing is wrong with the other link"
        text = _status(bed)
        assert "the link lte (lte0): its connections are plain TCP, and end with it" in text
        assert re.search(r"lte \(lte0, preferred\): up .*connections (\d+) \(\1 of plain TCP\)", text), text


@pytest.mark.usefixtures("root_bed")
def test_a_firewall_on_the_standby_is_named_and_the_cost_of_a_standby_is_counted(tmp_path: Path) -> None:
    with two_links(tmp_path, (LTE, replace(GEO, price="metered", mtu=SMALL_MTU))) as bed:
        for one in (LTE, GEO):
            bed.until(one.name, alive=True)
        wait_for("the first report", bed.states, timeout_s=20, interval_s=0.2)
        sizes = bed.line.near.run("ss", "-tinH", "src", bed.states()["geo"]["address"]).stdout
        assert set(re.findall(r"pmtu:(\d+)", sizes)) == {str(SMALL_MTU)}, sizes
        assert {int(size) for size in re.findall(r"advmss:(\d+)", sizes)} == {SMALL_MTU - 40}, sizes
        assert bed.states()["geo"]["stood_in_s"] == 0
        bed.line.emulated["lte"].outage(f"{CUT_S}s drop")
        bed.until("lte", alive=False, timeout_s=5)
        answer = bed.curl.get(download(SIZE // 8, scheme="https"), *resolved(bed, ORIGIN, 443), timeout_s=30)
        assert len(answer.body) == SIZE // 8
        bed.until("lte", alive=True)
        stood_in = bed.states()["geo"]
        assert stood_in["stood_in_down_bytes"] > SIZE // 8 > stood_in["stood_in_up_bytes"] > 0
        text = _status(bed)
        assert re.search(r"geo \(geo0, backup, metered\): up .*; stood in for \d+ s: [0-9.]+ kB down", text), text
        assert "no connection can move to it" not in text
        with rules(bed.line.near, STRIP, table="strip"):
            # Paths that were there before the firewall are whole, so there have to be new ones.
            address = f"{bed.states()['geo']['address']}/30"
            bed.line.near.ip("address", "del", address, "dev", "geo0")
            bed.until("geo", alive=False)
            bed.line.near.ip("address", "add", address, "dev", "geo0")
            bed.until("geo", alive=True)
            wait_for("the fault", lambda: "can move" in _hindered(bed, "geo"), timeout_s=60, interval_s=0.5)
        said = _status(bed)
        assert "the link geo (geo0): no connection can move to it" in said
        assert bed.watch
        assert "warning: the link geo: no connection can move to it" in bed.watch.output()


@pytest.mark.usefixtures("root_bed")
def test_clients_share_the_links_in_use_and_a_page_does_not_wait_for_downloads(tmp_path: Path) -> None:
    shared = [replace(one, fill="auto") for one in (LTE, GEO)]
    with two_links(tmp_path, (shared[0], shared[1])) as bed, ThreadPoolExecutor(2) as pool:
        whole = bed.sent_down()
        load_page(bed, "http", "first")
        idle_s = statistics.median(load_page(bed, "http", f"idle{number}") for number in range(3))
        url, before = download(20_000_000, scheme="https"), crossed(bed, "lte")
        parts = [pool.submit(bed.curl.stream, url, *resolved(bed, ORIGIN, 443), timeout_s=90) for _ in range(2)]
        wait_for("the downloads", lambda: crossed(bed, "lte") - before > SIZE, timeout_s=60, interval_s=0.2)
        beside_s = statistics.median(load_page(bed, "http", f"beside{number}") for number in range(5))
        # Without shares it takes eight times as long: the kernel gives a link all it may, and a page stands behind it.
        assert beside_s < idle_s * 2.5
        assert bed.sent_down() > whole * 0.8, "the link carries what is stated"
        bed.line.emulated["lte"].outage(f"{CUT_S}s drop")
        # The rate of the satellite is 2.5 times as high.
        wait_for("the limit of the other link", lambda: bed.sent_down() > whole * 2, timeout_s=CUT_S)
        bed.until("lte", alive=True, timeout_s=60)
        wait_for("the first limit", lambda: bed.sent_down() <= whole, timeout_s=20)
        assert [sum(len(part) for _, part in one.result()) for one in parts] == [20_000_000, 20_000_000]
        said = bed.pair.ground.output()
        assert "links in use that carry 20mbit down, and the limit of `fill` follows" in said


def test_a_kernel_without_multipath_tcp_leaves_the_pair_over_tcp(bed: TwoLinksBed) -> None:
    assert "198.51.100.40:8443" in bed.sockets(), "this kernel has it"
    bed.line.near.sysctl("net.mptcp.enabled", 0)
    # `longhaul run` starts another Envoy, whose sockets are new.
    (envoy,) = of_program("envoy", bed.line.near.processes())
    os.kill(envoy, signal.SIGKILL)
    url, route = download(SIZE // 40), resolved(bed, ORIGIN, 80)
    wait_for("responses", lambda: len(bed.curl.get(url, *route, timeout_s=5).body) == SIZE // 40, timeout_s=40)
    assert "198.51.100.40:8443" not in bed.sockets()
    assert "198.51.100.40:8443" in bed.line.near.run("ss", "-tnH").stdout, "the pair is there, over TCP"
