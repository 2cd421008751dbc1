"""Bodies in br between the two ends of a pair, for clients that accept br and for clients that do not."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

import brotli
import pytest

from e2e.pair_bed import LAB, PairBed, standing_pair
from harness.boxes.pair import PIPE_PORT
from harness.clients.commands import Answer, Curl
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.lab.line import FAR
from harness.origins import odd as odd_origin
from harness.origins.odd import path_of

ODD, ODD_ADDRESS = "odd.example.org", "203.0.113.201"
HTML = b"<!doctype html><title>t</title>" + b"".join(b"<p class=a>%d" % (one * 7919 % 10007) for one in range(900))
BR, GZIP, PLAIN = "gzip, br", "gzip, deflate", "identity"
TAG = b'etag: "x"\r\n'


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:  # noqa: ARG001 - order of set-up
    folder = tmp_path_factory.mktemp("encoding")
    with standing_pair(folder, profile="leo", records={ODD: [ODD_ADDRESS]}, warm=0) as standing:
        origin = Child(standing.line.internet.inside(odd_origin.command(ODD_ADDRESS)), folder / "odd.log")
        try:
            origin.wait_for_output("ready")
            standing.pair.until_piped()
            wait_for("a response", lambda: standing.curl.get(f"http://{LAB}/x.bin").status == 200, timeout_s=60)
            yield standing
        finally:
            origin.stop()


def response(body: bytes, fields: bytes = b"", status: bytes = b"200 OK", kind: bytes = b"text/html") -> bytes:
    length = b"content-length: %d\r\n" % len(body) if b"content-length" not in fields else b""
    return b"HTTP/1.1 " + status + b"\r\ncontent-type: " + kind + b"\r\n" + length + TAG + fields + b"\r\n" + body


def ask(bed: PairBed, sent: bytes, accepted: str, *options: str) -> Answer:
    """Requests a response from the odd origin as a client that accepts these content encodings."""
    return bed.curl.get(f"http://{ODD}{path_of(sent)}", "--header", f"Accept-Encoding: {accepted}", *options)


def counted(bed: PairBed, name: str, end: str = "remote") -> float:
    box = bed.pair.remote if end == "remote" else bed.pair.ground
    name = f"longhaul_bundling_{name}"
    return box.metrics().get(name, box.metrics().get(f"{name}{{}}", 0))


def decompressed(bed: PairBed) -> float:
    return counted(bed, "decompressed_total")


@pytest.mark.parametrize("origin", ["plain", "br"])
@pytest.mark.parametrize("accepted", [BR, GZIP, PLAIN])
def test_every_client_gets_the_body_in_an_encoding_that_it_accepts(bed: PairBed, origin: str, accepted: str) -> None:
    note = b"x-case: %s\r\n" % accepted.encode()
    sent = response(HTML, note)
    if origin == "br":
        sent = response(brotli.compress(HTML), note + b"content-encoding: br\r\n")
    before = decompressed(bed)
    answer = ask(bed, sent, accepted)
    assert (answer.status, answer.problem) == (200, "")
    assert "accept-encoding" in (answer.header("vary") or "").lower()
    if accepted == BR:
        assert answer.header("content-encoding") == "br"
        assert brotli.decompress(answer.body) == HTML
        assert decompressed(bed) == before
    else:
        assert (answer.header("content-encoding"), answer.body) == (None, HTML)
        assert (answer.header("etag"), answer.header("content-length")) == ('W/"x"', None)
        assert decompressed(bed) == before + 1
    assert not [name for name, _ in answer.headers if name.startswith("x-longhaul")]


def test_a_body_crosses_the_link_in_br_and_is_smaller_than_in_gzip(bed: PairBed) -> None:
    before = counted(bed, "decompressed_bytes_total")
    assert ask(bed, response(HTML, b"x-case: bytes\r\n"), GZIP).body == HTML
    crossed = counted(bed, "decompressed_bytes_total") - before
    assert 0 < crossed < 0.95 * len(gzip.compress(HTML, 6))


@pytest.mark.parametrize("fields", [b"cache-control: no-transform\r\n", b"content-encoding: gzip\r\n"])
def test_responses_that_must_not_be_transformed_cross_unchanged(bed: PairBed, fields: bytes) -> None:
    body = gzip.compress(HTML) if b"gzip" in fields else HTML
    before = decompressed(bed)
    answer = ask(bed, response(body, fields), GZIP)
    assert (answer.body, answer.header("etag")) == (body, '"x"')
    assert decompressed(bed) == before


def test_a_range_is_a_range_of_the_origins_bytes(bed: PairBed) -> None:
    fields = b"content-range: bytes 0-99/%d\r\n" % len(HTML)
    sent = response(HTML[:100], fields, b"206 Partial Content")
    before = decompressed(bed)
    answer = ask(bed, sent, GZIP, "--range", "0-99")
    assert (answer.status, answer.body, answer.header("content-encoding")) == (206, HTML[:100], None)
    assert decompressed(bed) == before
    whole = ask(bed, response(HTML, b"x-case: range\r\n"), PLAIN, "--range", "0-", "--header", "x-longhaul-takes: br")
    assert (whole.body, whole.header("etag")) == (HTML, '"x"'), "the origin ignored the range"


def test_responses_without_a_body_have_the_fields_of_those_with_one(bed: PairBed) -> None:
    packed = response(b"", b"content-encoding: br\r\ncontent-length: 700\r\n")
    head = ask(bed, packed, GZIP, "--head")
    assert (head.status, head.header("content-encoding"), head.header("content-length")) == (200, None, None)
    assert head.header("etag") == 'W/"x"'
    head = ask(bed, packed, BR, "--head")
    assert (head.header("content-encoding"), head.header("content-length")) == ("br", "700")
    unchanged = b"HTTP/1.1 304 Not Modified\r\n" + TAG + b"\r\n"
    for held, tag in (('W/"x"', 'W/"x"'), ('"x"', '"x"')):
        answer = ask(bed, unchanged, GZIP, "--header", f"If-None-Match: {held}")
        assert (answer.status, answer.header("etag"), answer.body) == (304, tag, b"")
    empty = ask(bed, b"HTTP/1.1 204 No Content\r\n\r\n", GZIP)
    assert (empty.status, empty.body, empty.problem) == (204, b"", "")


@pytest.mark.parametrize(
    ("reason", "body", "fields"),
    [
        ("damaged", b"<p>not br at all" * 99, b""),
        ("cut_off", brotli.compress(HTML)[:-9], b""),
        ("expansion", brotli.compress(bytes(64 << 20), quality=2, lgwin=24), b""),
    ],
)
def test_a_body_that_is_not_br_ends_early_with_its_reason(
    bed: PairBed, reason: str, body: bytes, fields: bytes
) -> None:
    name = f'broken_total{{reason="{reason}"}}'
    before = counted(bed, name)
    answer = ask(bed, response(body, fields + b"content-encoding: br\r\n"), GZIP)
    assert answer.problem, "the client sees that it is incomplete"
    assert counted(bed, name) == before + 1
    assert ask(bed, response(HTML, b"x-after: %s\r\n" % reason.encode()), GZIP).body == HTML


def test_a_body_of_1000_to_1_arrives_whole(bed: PairBed) -> None:
    plain = b"".join(bytes([one * 37 % 251]) * 8192 for one in range(2560))
    packed = brotli.compress(plain, quality=2)
    assert len(plain) > 900 * len(packed)
    answer = ask(bed, response(packed, b"content-encoding: br\r\n"), GZIP)
    assert (answer.problem, answer.body == plain) == ("", True)


def test_no_origin_sees_that_the_pipe_takes_br_and_no_client_can_say_it(bed: PairBed) -> None:
    for accepted, heard in ((BR, "gzip"), (GZIP, "gzip"), (PLAIN, "identity"), ("br", "identity")):
        forged = ("--header", "x-longhaul-takes: br", "--header", f"Accept-Encoding: {accepted}")
        seen = json.dumps(json.loads(bed.curl.get(f"http://{LAB}/_/echo", *forged).body)).lower()
        assert "x-longhaul" not in seen
        assert f'"accept-encoding": ["{heard}"]' in seen, "the client's own acceptance, and never more"


def test_a_remote_that_does_not_take_br_gets_what_its_client_accepts(bed: PairBed) -> None:
    files = bed.pair.identity
    ground = bed.folder, bed.line.near, "--cert", files["cert"], "--key", files["key"], "--insecure", "--http2"
    old = Curl(*ground, "--connect-to", f"{ODD}:443:{FAR}:{PIPE_PORT}")
    for body, fields in ((HTML, b""), (brotli.compress(HTML), b"content-encoding: br\r\n")):
        url = f"https://{ODD}" + path_of(response(body, fields + b"x-case: old\r\n"))
        packed = old.get(url, "--header", f"Accept-Encoding: {GZIP}")
        assert (packed.header("content-encoding"), gzip.decompress(packed.body)) == ("gzip", HTML)
        plain = old.get(url, "--header", f"Accept-Encoding: {PLAIN}")
        assert (plain.header("content-encoding"), plain.body) == (None, HTML)
    assert counted(bed, "decompressed_total", "ground") > 0
