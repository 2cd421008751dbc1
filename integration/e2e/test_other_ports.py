"""TCP ports beside the web (`listen.tcp`): over a pair, as quick as the link allows, and directly where that fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.host.waiting import quickest, wait_for
from harness.lab.line import NEAR_HOME
from harness.lab.other_ports import (
    FORBIDDEN,
    FREE,
    LISTED,
    MAIL,
    NOT_AT_GROUND,
    SERVER_IPV6,
    SPEAKS_FIRST_IPV6,
    UNTOUCHED,
    OtherPortsBed,
    other_ports_bed,
    same,
)
from harness.lab.tunnels import SPEAKS_FIRST
from harness.net.topology import PRIVATE_ADDRESS

SAVED = 0.95
"""The part of a round trip that a server that speaks first is heard earlier, at least."""


@pytest.fixture(scope="module")
def bed(
    root_bed: None,  # noqa: ARG001 - order of set-up
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[OtherPortsBed]:
    with other_ports_bed(tmp_path_factory.mktemp("other-ports"), "pair") as running:
        yield running


def test_a_server_that_speaks_first_is_heard_a_round_trip_earlier(bed: OtherPortsBed) -> None:
    rtt_s = bed.tunnels.rtt_s
    direct_s = bed.banner_s(UNTOUCHED)
    assert direct_s >= 2 * rtt_s
    for port, address in ((22, None), (587, None), (FREE, SPEAKS_FIRST_IPV6)):
        by_pair_s = quickest(
            lambda port=port, address=address: bed.banner_s(port, *([address] if address else [])),
            direct_s - SAVED * rtt_s,
        )
        assert by_pair_s <= direct_s - SAVED * rtt_s, port
    assert {line["attempts"] for line in bed.logged()} == {1}
    [six] = {line["authority"] for line in bed.logged() if SPEAKS_FIRST_IPV6 in line["authority"]}
    assert six == f"[{SPEAKS_FIRST_IPV6}]:{FREE}"


def test_real_programs_work_and_every_byte_arrives_with_the_end_that_the_server_made(bed: OtherPortsBed) -> None:
    size = 300_000
    asked: list[dict[str, Any]] = [{}, {"end": "reset"}, {"tls": True}, {"address": SERVER_IPV6}]
    of_all = {"do": "download", "end": "close", "size": size, "port": FREE, "timeout": 60}
    clients = [bed.tunnels.start(**of_all | ask) for ask in asked]
    count, download, (sftp, place) = bed.ssh("count"), bed.ssh("download", str(size)), bed.sftp(size)
    imap, smtp = bed.mail("imap"), bed.mail("smtp")
    # The client of ssh ends the input of the program at the other end, and still reads its output.
    counted, problem = count.communicate(b"x" * 50_000, timeout=60)
    assert counted == b"50000\n", problem
    data, problem = download.communicate(timeout=60)
    assert same(data, size), problem
    _, problem = sftp.communicate(timeout=60)
    assert same(place.read_bytes(), size), problem
    for session in (imap, smtp):
        seen = bed.tunnels.finish(session)
        assert seen["right"], seen
    whole = [bed.tunnels.finish(client) for client in clients]
    assert [(one["bytes"], one["right"], one["end"]) for one in whole] == [(size, True, "fin")] * len(asked), whole
    assert {line["attempts"] for line in bed.logged()} == {1}


def test_a_port_that_the_ground_does_not_list_goes_directly(bed: OtherPortsBed) -> None:
    before = bed.led()
    line = logged(bed, lambda: bed.banner_s(NOT_AT_GROUND))
    assert (line["attempts"], line["tls_failure"]) == (2, "tunnel_response:403")
    assert bed.led() == before + 1


def test_private_destinations_and_ports_on_no_list_pass_untouched(bed: OtherPortsBed) -> None:
    before = bed.led()
    bed.banner_s(UNTOUCHED)
    assert bed.banner_s(22, PRIVATE_ADDRESS) >= 2 * bed.tunnels.rtt_s
    assert bed.led() == before


def test_the_ground_connects_to_no_private_address_at_any_listed_port(bed: OtherPortsBed) -> None:
    forbidden = [f"{address}:{port}" for address in FORBIDDEN for port in LISTED]
    statuses = bed.connects([*forbidden, f"{SPEAKS_FIRST}:22", f"{SPEAKS_FIRST}:{NOT_AT_GROUND}"])
    assert statuses.pop(f"{SPEAKS_FIRST}:22") == 200
    assert set(statuses.values()) == {403}, statuses
    # A client that dials the remote's listener itself gets nothing from it.
    own = bed.tunnels.ask(do="banner", address=NEAR_HOME, port=4170)
    assert not own["right"]


def test_while_the_link_is_dead_a_connection_waits_as_it_would_without_longhaul(bed: OtherPortsBed) -> None:
    link = bed.tunnels.line.link
    assert link
    silent_s = 3
    link.outage(f"{silent_s}s drop")
    began = time.monotonic()
    heard = bed.tunnels.ask(do="banner", address=SPEAKS_FIRST_IPV6, port=FREE)
    assert heard["right"]
    assert time.monotonic() - began > silent_s


def test_without_a_ground_connections_go_directly_and_come_back(bed: OtherPortsBed) -> None:
    with bed.refusing_ground():
        # The first one finds the pipe that has just broken.
        for _ in range(2):
            assert logged(bed, lambda: bed.banner_s(22))["attempts"] == 2
        # A port where nobody listens ends without a byte.
        closed = logged(bed, lambda: bed.tunnels.ask(do="download", end="close", size=1, port=FREE, address=MAIL))
        assert (closed["attempts"], closed["bytes_out"]) == (2, 0)
    wait_for("the pipe", lambda: logged(bed, lambda: bed.banner_s(22))["attempts"] == 1, interval_s=0.5)


def logged(bed: OtherPortsBed, connect: Callable[[], Any]) -> dict[str, Any]:
    """Returns the line of the remote's log for one connection."""
    connect()
    return bed.logged()[-1]
