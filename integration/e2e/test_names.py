"""Names at the clients' end of a pair: DNS responses that a remote keeps (`dns.remember`)."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from dnslib import DNSRecord

from e2e.pair_bed import LAB, RTT_S, TODAY, PairBed, standing_pair
from harness.boxes.pep import parse_metrics
from harness.host.waiting import wait_for

NAMES = [LAB, TODAY, *(f"h{number}.example.org" for number in range(6))]
HITS = "coredns_remember_hits_total"
COREDNS = "http://127.0.0.1:9153/metrics"


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:  # noqa: ARG001 - order of set-up
    # No name is listed, as in the files of `longhaul pair init`.
    with standing_pair(tmp_path_factory.mktemp("names"), steered=()) as standing:
        standing.pair.until_piped()
        yield standing


def hits(bed: PairBed) -> float:
    """Returns the number of queries that the remote served from memory."""
    page = parse_metrics(bed.pair.remote.page(COREDNS))
    return sum(value for name, value in page.items() if name.startswith(HITS))


def look_up_all(bed: PairBed, at_most_s: float) -> None:
    for name in NAMES:
        answer = bed.dig(name, "A")
        assert answer.addresses() == [bed.address(name)], answer
        assert answer.seconds < at_most_s, answer


def test_a_name_crosses_the_link_once_and_neither_a_restart_nor_an_outage_loses_it(bed: PairBed) -> None:
    assert bed.dig(NAMES[0], "A").seconds > RTT_S * 0.9
    look_up_all(bed, at_most_s=10)
    before = hits(bed)
    look_up_all(bed, at_most_s=RTT_S / 2)
    assert hits(bed) == before + len(NAMES)

    bed.pair.remote.child.stop()
    file = bed.pair.remote.state / "kept" / "names.bin"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    # The ground is away before the first query, so only the file can know.
    with bed.pair.without_ground():
        bed.pair.remote.__enter__()
        look_up_all(bed, at_most_s=RTT_S / 2)
        assert hits(bed) == len(NAMES)
        # A name that was never looked up has no response, and none is made up.
        assert bed.dig("h9.example.org", "A").status != "NOERROR"
    bed.pair.until_piped()
    known = [bed.address("h9.example.org")]
    wait_for("a new name after the outage", lambda: bed.dig("h9.example.org", "A").addresses() == known, timeout_s=15)


def test_a_torn_file_is_an_empty_memory_and_the_box_starts(bed: PairBed) -> None:
    file = bed.pair.remote.state / "kept" / "names.bin"
    bed.pair.remote.child.stop()
    file.write_bytes(file.read_bytes()[:-9])
    bed.pair.remote.__enter__()
    bed.pair.until_piped()
    assert "Nothing is remembered from before the start" in bed.pair.remote.output()
    assert bed.dig(LAB, "A").addresses() == [bed.address(LAB)]
    assert hits(bed) == 0


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_dns.resolver.arpa", "SVCB"),
        ("resolver.arpa", "A"),
        ("use-application-dns.net", "A"),
        ("use-application-dns.net", "AAAA"),
        ("mask.icloud.com", "HTTPS"),
        ("mask-h2.icloud.com", "A"),
    ],
)
def test_clients_are_not_led_to_another_resolver(bed: PairBed, name: str, kind: str) -> None:
    answer = bed.dig(name, kind)
    assert (answer.status, answer.answer) == ("NOERROR", []), answer
    assert [record for _, _, record, _ in answer.authority] == ["SOA"], answer
    assert answer.seconds < RTT_S / 2, answer


def test_names_below_those_of_the_canaries_are_the_origins(bed: PairBed) -> None:
    assert bed.dig("x.mask.icloud.com", "A").seconds > RTT_S * 0.9


def ways(bed: PairBed) -> dict[str, float]:
    """Returns the responses that came by a stream of the pipe and by a connection."""
    page = parse_metrics(bed.pair.remote.page(COREDNS))
    return {
        way: sum(
            value for name, value in page.items() if name.startswith(f'coredns_lookups_responses_total{{way="{way}"')
        )
        for way in ("stream", "connection")
    }


def test_new_names_are_streams_of_the_pipe_and_none_opens_a_connection(bed: PairBed) -> None:
    bed.pair.until_piped()
    before, opened = ways(bed), bed.opened()
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda number: bed.dig(f"new{number}.example.org", "A"), range(20)))
    assert {one.status for one in answers} == {"NXDOMAIN"}, answers
    after = ways(bed)
    assert after["stream"] - before["stream"] == 20, (before, after)
    assert after["connection"] == before["connection"]
    assert bed.opened() == opened


def test_lookups_are_not_in_the_access_log_of_the_ground(bed: PairBed) -> None:
    bed.dig("unlogged.example.org", "A")
    bed.curl.get(f"http://{LAB}/logged.bin")
    wait_for(
        "the log", lambda: any(one.get("path") == "/logged.bin" for one in bed.pair.ground.requests()), timeout_s=20
    )
    assert not [one for one in bed.pair.ground.requests() if "lookups" in one.get("authority", "")]


def test_no_client_reaches_the_route_of_lookups(bed: PairBed, tmp_path: Path) -> None:
    query = bytes(DNSRecord.question(LAB).pack())
    message = b"\x0a" + bytes([len(query)]) + query
    body = tmp_path / "query"
    body.write_bytes(b"\0" + len(message).to_bytes(4, "big") + message)
    for host in ("lookups.pair.invalid", "lookups.pair.invalid:80", "LOOKUPS.pair.invalid"):
        answer = bed.curl.get(
            f"http://{LAB}/coredns.dns.DnsService/Query", "-H", f"Host: {host}", "-H", "content-type: application/grpc",
            "-H", "longhaul-lookup: 1", "--data-binary", f"@{body}",
        )  # fmt: skip
        assert answer.status, answer
        assert LAB.split(".")[0].encode() not in answer.body, answer
