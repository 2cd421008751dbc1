"""Pages that cross a pair as differences from other pages of their sites, on loopback."""

from __future__ import annotations

import gzip
import http.client
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.boxes.grounds import GroundsBed, grounds
from harness.boxes.pep import command
from harness.host.processes import is_running
from harness.host.waiting import wait_for
from harness.origins.http1 import Message, Origin, message

PAGE = {"Accept": "text/html,*/*;q=0.8", "Accept-Encoding": "gzip, deflate", "User-Agent": "b"}
SITES = [f"{name}.test" for name in ("split", "secret", "fixed", "packed", "slow", "held", "claim", "again", "br")]
HTML = {"Content-Type": "text/html; charset=utf-8", "ETag": '"x"'}


def article(site: str, number: int) -> bytes:
    """Returns an article. Two articles of one site have most of their bytes in common."""
    common = "".join(f"<li><a href=/{one * 7919 % 10007}>{site} {one * 104729 % 99991}</a>" for one in range(900))
    own = "".join(f"<p>{number * one * 31337 % 100003}" for one in range(1, 60))
    return f"<!doctype html><title>{site} {number}</title><ul>{common}</ul>{own}".encode()


@dataclass
class Pages:
    """Serves what a test has put there, by site and path, and remembers the requests."""

    bodies: dict[tuple[str, str], tuple[dict[str, str], bytes]] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    rest: threading.Event = field(default_factory=threading.Event)
    """A page at `/slow` sends its second half after this."""

    def put(self, site: str, path: str, body: bytes, **fields: str) -> bytes:
        """Puts a page there. Returns it."""
        more = {name.replace("_", "-"): value for name, value in fields.items()}
        self.bodies[site, path] = ({**HTML, **more}, body)
        return body

    def __call__(self, request: Message) -> Iterator[bytes]:
        self.asked.append({name.decode(): value.decode() for name, value in request.fields})
        fields, body = self.bodies.get((request.get("host") or "", request.target), (HTML, b"none"))
        told = {**fields, "Content-Length": str(len(body))}
        half = len(body) // 2 if request.target == "/slow" else len(body)
        head = [(name.encode(), value.encode()) for name, value in told.items()]
        yield message(b"HTTP/1.1 200 OK", head, body[:half])
        if half < len(body):
            self.rest.wait(30)
            yield body[half:]


@dataclass
class Bed:
    """A pair before the origin."""

    origin: Pages
    pair: GroundsBed

    def load(self, site: str, path: str, **fields: str) -> tuple[http.client.HTTPResponse, bytes]:
        """Loads a page as a browser does."""
        client = http.client.HTTPConnection("127.0.0.1", self.pair.http, timeout=30)
        more = {name.replace("_", "-"): value for name, value in fields.items()}
        try:
            client.request("GET", path, headers={**PAGE, "Host": site, **more})
            answer = client.getresponse()
            return answer, answer.read()
        finally:
            client.close()

    def counted(self, name: str, *, at_ground: bool = False) -> float:
        """Returns a counter of one end, over all labels."""
        ground = self.pair.grounds[0]
        box = ground.pep if at_ground else self.pair.remote
        metrics = box.metrics().items()
        return sum(value for key, value in metrics if key.startswith(f"longhaul_bundling_{name}"))

    def delta_bytes(self, site: str, path: str, expected: bytes, **fields: str) -> float:
        """Loads a page. Returns its bytes on the pipe if it was a delta, and 0 otherwise."""
        before = self.counted("delta_bytes_total")
        answer, body = self.load(site, path, **fields)
        assert (answer.status, body == expected) == (200, True), (site, path, answer.status, len(body))
        assert not [name for name, _ in answer.getheaders() if name.lower().startswith("x-longhaul")]
        assert answer.getheader("Content-Encoding") is None
        return self.counted("delta_bytes_total") - before


@contextmanager
def standing(folder: Path, **settings: Any) -> Iterator[Bed]:
    """Runs a pair before an origin."""
    pages = Pages()
    hosts = [f"{name}.{site}" for site in SITES for name in ("www", "mail")]
    with closing(Origin(pages)) as origin:
        address = f"127.0.0.1:{origin.port}"
        with grounds(folder, 1, origin=address, hosts=hosts, warm=0, **settings) as pair:
            yield Bed(pages, pair)
        pages.rest.set()


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with standing(tmp_path_factory.mktemp("deltas"), page={"delta": "on", "bundle": True}) as running:
        yield running


@pytest.mark.parametrize("coding", ["plain", "gzip"])
def test_the_second_page_of_a_site_crosses_in_a_fraction_and_arrives_byte_for_byte(bed: Bed, coding: str) -> None:
    site = {"plain": "www.split.test", "gzip": "www.packed.test"}[coding]
    for number in (1, 2):
        page = article(site, number)
        if coding == "gzip":
            bed.origin.put(site, f"/{number}", gzip.compress(page, 6), Content_Encoding="gzip")
        else:
            bed.origin.put(site, f"/{number}", page)
    before = bed.counted("decompressed_bytes_total")
    assert bed.delta_bytes(site, "/1", article(site, 1)) == 0
    first = bed.counted("decompressed_bytes_total") - before
    second = bed.delta_bytes(site, "/2", article(site, 2))
    assert 0 < second < 0.5 * first, (first, second)
    for seen in bed.origin.asked:
        assert not [name for name in seen if name.startswith("x-longhaul")]


def test_a_page_for_one_client_is_no_base_and_has_none(bed: Bed) -> None:
    www, mail = "www.secret.test", "mail.secret.test"
    public = {
        site: [bed.origin.put(site, f"/{one}", article("secret", one)) for one in range(4)] for site in (www, mail)
    }
    for path, fields in (("/cookie", {}), ("/set", {"Set_Cookie": "a=b"}), ("/own", {"Cache_Control": "private"})):
        private = bed.origin.put(www, path, article("secret", 90), **fields)
        kept = bed.counted("bases_total"), bed.counted("bases_total", at_ground=True)
        sent = {"Cookie": "a=b"} if path == "/cookie" else {}
        assert bed.delta_bytes(www, path, private, **sent) == 0
        assert (bed.counted("bases_total"), bed.counted("bases_total", at_ground=True)) == kept
        assert bed.delta_bytes(www, path, private, **sent) == 0, "no page is encoded against it"
    assert bed.delta_bytes(mail, "/0", public[mail][0]) == 0
    assert bed.delta_bytes(www, "/1", public[www][1]) > 0
    left = bed.counted('delta_left_total{reason="private"}', at_ground=True)
    assert bed.delta_bytes(www, "/2", public[www][2], Cookie="a=b") == 0, "its length would show what it has in common"
    assert bed.delta_bytes(www, "/own", private, Authorization="x") == 0
    assert bed.counted('delta_left_total{reason="private"}', at_ground=True) == left + 2
    shared = bed.origin.put(www, "/shared", public[www][3], Cache_Control="public, max-age=60")
    assert bed.delta_bytes(www, "/shared", shared, Cookie="a=b") > 0, "the origin lets any client have it"


def test_a_page_that_must_not_change_is_no_delta(bed: Bed) -> None:
    site = "www.fixed.test"
    assert bed.delta_bytes(site, "/1", bed.origin.put(site, "/1", article(site, 1))) == 0
    fixed = bed.origin.put(site, "/2", article(site, 2), Cache_Control="no-transform")
    assert bed.delta_bytes(site, "/2", fixed) == 0
    assert bed.counted('delta_left_total{reason="no_transform"}', at_ground=True) == 1


def test_every_piece_of_a_delta_arrives_when_the_origin_has_sent_it(bed: Bed) -> None:
    site = "www.slow.test"
    assert bed.delta_bytes(site, "/1", bed.origin.put(site, "/1", article(site, 1))) == 0
    page = bed.origin.put(site, "/slow", article(site, 2))
    before = bed.counted("deltas_total")
    client = http.client.HTTPConnection("127.0.0.1", bed.pair.http, timeout=30)
    client.request("GET", "/slow", headers={**PAGE, "Host": site})
    answer = client.getresponse()
    first = answer.read(len(page) // 2)
    bed.origin.rest.set()
    assert first + answer.read() == page
    client.close()
    assert bed.counted("deltas_total") == before + 1


def test_a_page_whose_bytes_wait_for_its_objects_is_a_delta_as_well(bed: Bed) -> None:
    site = "www.held.test"
    links = "".join(f"<link rel=stylesheet href=/{one}.css>" for one in range(9)).encode()
    sent = bed.counted("objects_total", at_ground=True)
    for one in range(9):
        bed.origin.put(site, f"/{one}.css", b"a{}" * (one + 1), **{"Content-Type": "text/css"})
    for number in (1, 2, 3):
        page = bed.origin.put(site, f"/{number}", b"<!doctype html>" + links + article(site, number))
        assert (bed.delta_bytes(site, f"/{number}", page) > 0) == (number > 1)
    wait_for("objects sent", lambda: bed.counted("objects_total", at_ground=True) > sent)


def test_no_client_can_name_a_base(bed: Bed) -> None:
    site = "www.claim.test"
    page = bed.origin.put(site, "/1", article(site, 1))
    named = {"x_longhaul_base": "00" * 8, "x_longhaul_takes": "br, delta"}
    assert bed.delta_bytes(site, "/1", page, **named) == 0
    assert bed.delta_bytes(site, "/1", page, **named) > 0, "the remote's own field counts"
    answer, body = bed.load(site, "/1", Accept="*/*", **named)
    assert (answer.getheader("Content-Encoding"), body) == (None, page)
    assert not [name for name in bed.origin.asked[-1] if name.startswith("x-longhaul")]


def test_a_client_that_accepts_br_gets_pages_that_it_can_read(bed: Bed) -> None:
    site = "www.br.test"
    for number in (1, 2):
        page = bed.origin.put(site, f"/{number}", article(site, number))
        crossed = bed.delta_bytes(site, f"/{number}", page, Accept_Encoding="gzip, br")
        assert (crossed > 0) == (number > 1)


def kill(pids: list[int]) -> None:
    """Kills processes at once, as a power cut does."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.long
def test_a_restart_of_either_end_loses_no_page(bed: Bed) -> None:
    site = "www.again.test"
    pages = [bed.origin.put(site, f"/{one}", article(site, one)) for one in range(9)]

    def is_delta(number: int) -> bool:
        return bed.delta_bytes(site, f"/{number}", pages[number]) > 0

    def has_link() -> bool:
        return bed.load(site, "/0", Accept="*/*")[0].status == 200

    assert [is_delta(0), is_delta(1)] == [False, True]
    ground = bed.pair.grounds[0]
    ground.kill()
    ground.pep.__enter__()
    wait_for("the link", has_link, timeout_s=60)
    assert [is_delta(2), is_delta(3)] == [False, True]
    remote = bed.pair.remote
    own = remote.child.process.pid
    pids = [own, *map(int, Path(f"/proc/{own}/task/{own}/children").read_text().split())]
    kill(pids)
    remote.child.process.wait()
    wait_for("the end of the remote", lambda: not any(is_running(pid) for pid in pids))
    remote.__enter__()
    wait_for("the link", has_link, timeout_s=60)
    assert [is_delta(4), is_delta(5)] == [False, True]
    assert bed.counted("broken_total") == 0


def test_check_says_if_deltas_pay_and_why(bed: Bed) -> None:
    said = " ".join(command("check", bed.pair.grounds[0].config).stdout.split())  # without its line breaks
    assert re.search(r"deltas on \(they save \d+(ms|us|s) of the link for a page\)", said), said


def test_explain_says_if_a_page_is_a_delta_or_why_not(bed: Bed) -> None:
    def explained(*headers: str) -> str:
        page = (
            "explain",
            bed.pair.grounds[0].config,
            "--url",
            "http://www.example.org/",
            "-H",
            "content-type: text/html",
        )
        return command(*page, *(word for header in headers for word in ("-H", header)), "/dev/null").stdout

    assert "it is a base for other pages" in explained()
    assert "the page crosses the link whole (private)" in explained("cache-control: private")
    assert "the page crosses the link whole (no_transform)" in explained("cache-control: no-transform")
