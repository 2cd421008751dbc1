"""The filter in a real Envoy: the same behaviour for every framing of a body, and the rules of the proxy's own
origin."""

import gzip
import os
import threading
import unittest
import zlib
from pathlib import Path

from bed import CONFIG, Answer, Envoy, chunked, head, is_quiet, ok
from harness.host.waiting import wait_for
from harness.origins.http1 import Origin, chunks, read_response

PROXY = "198.51.100.12:8080"
PAGE_HOST = "www.foo.example"

PAGE = (
    b"<!doctype html><title>T</title><link rel=stylesheet href='http://cdn.example/a.css'>"
    b'<img src="http://i.cnn.net/plane.jpg" srcset="http://i.cnn.net/2.jpg 2x, /own.jpg">'
    b"<style>p { background: url(http://i.cnn.net/bg.png) }</style><p style='background:url(//i.cnn.net/p.png)'>"
    b"<a href='http://i.cnn.net/'>stays</a><script src=https://cdn.example/secure.js></script>caf\xe9 &amp; more"
)
MOVED = PAGE.replace(b"'http://cdn.example/a.css'", b"'http://198.51.100.12:8080/cdn.example/a.css'")
for _old, _new in [
    (b'src="http://i.cnn.net/plane.jpg"', b'src="http://198.51.100.12:8080/i.cnn.net/plane.jpg"'),
    (b'"http://i.cnn.net/2.jpg 2x', b'"http://198.51.100.12:8080/i.cnn.net/2.jpg 2x'),
    (b"url(http://i.cnn.net/bg.png)", b"url(http://198.51.100.12:8080/i.cnn.net/bg.png)"),
    (b"url(//i.cnn.net/p.png)", b"url(http://198.51.100.12:8080/i.cnn.net/p.png)"),
]:
    MOVED = MOVED.replace(_old, _new)


class InEnvoy(unittest.TestCase):
    """One Envoy and one origin for all tests of a class."""

    config: dict = CONFIG
    origin: Origin
    envoy: Envoy
    nothing = Answer([ok(b"")])

    @classmethod
    def setUpClass(cls) -> None:
        cls.origin = Origin(cls.nothing)
        cls.addClassCleanup(cls.origin.close)
        cls.envoy = Envoy(cls.origin, cls.config)
        cls.addClassCleanup(cls.envoy.close)

    def setUp(self) -> None:
        self.origin.requests.clear()
        self.origin.answer = self.nothing

    def answer(self, *pieces: bytes) -> None:
        self.origin.answer = Answer(list(pieces))

    def asked(self):
        """Returns the only request that reached the origin."""
        self.assertEqual(len(self.origin.requests), 1, self.origin.requests)
        return self.origin.requests[0]


class Bodies(InEnvoy):
    def test_a_page_with_a_length_is_rewritten_and_loses_the_length(self):
        self.answer(ok(PAGE, 'etag: "a"', "x-kept: caf\xe9"))
        response = self.envoy.get(PAGE_HOST)
        self.assertEqual((response.status, response.body, response.complete), (200, MOVED, True))
        self.assertIsNone(response.get("content-length"))
        self.assertRegex(response.get("etag") or "", '^W/"a;lh=')
        self.assertEqual(response.get("x-kept"), "caf\xe9")

    def test_any_size_of_chunk_gives_the_same_page(self):
        body = PAGE + b"<p>filler" * 700
        for size in [1, 2, 3, 7, 64, 1000, 4096]:
            with self.subTest(size=size):
                self.answer(*chunked([body[at : at + size] for at in range(0, len(body), size)]))
                response = self.envoy.get(PAGE_HOST)
                self.assertEqual((response.body, response.complete), (MOVED + b"<p>filler" * 700, True))

    def test_large_pages_come_through_whole(self):
        filler = b"<p class=x>some text of a page</p>\n" * 30000
        for size in [32768, 65536, 1 << 20]:
            with self.subTest(size=size):
                body = PAGE + filler + PAGE
                self.answer(*chunked([body[at : at + size] for at in range(0, len(body), size)]))
                response = self.envoy.get(PAGE_HOST)
                self.assertEqual((response.body, response.complete), (MOVED + filler + MOVED, True))

    def test_empty_bodies_stay_empty(self):
        for answer in [ok(b""), b"".join(chunked([]))]:
            self.answer(answer)
            response = self.envoy.get(PAGE_HOST)
            self.assertEqual((response.status, response.body, response.complete), (200, b"", True))

    def test_a_moved_sheet_is_rewritten_and_one_in_its_place_and_an_image_are_not(self):
        sheet = b"@import 'http://cdn.example/b.css'; p { background: url( http://i.cnn.net/a.png ) }"
        self.answer(ok(sheet, kind="text/css"))
        expected = sheet.replace(b"http://", b"http://198.51.100.12:8080/")
        self.assertEqual(self.envoy.get(PROXY, "/static.example/a.css", "accept: text/css,*/*;q=0.1").body, expected)
        self.assertEqual(self.envoy.get(PAGE_HOST, "/a.css").body, sheet)
        self.answer(ok(PAGE, "accept-ranges: bytes", kind="image/png"))
        response = self.envoy.get(PAGE_HOST, "/a.png")
        self.assertEqual((response.body, response.get("content-length")), (PAGE, str(len(PAGE))))
        self.assertEqual(response.get("accept-ranges"), "bytes")

    def test_pages_in_other_content_encodings_than_gzip_pass_unchanged(self):
        for coding in ["br", "unheard-of", "gzip, gzip"]:
            self.answer(ok(PAGE, f"content-encoding: {coding}"))
            response = self.envoy.get(PAGE_HOST)
            self.assertEqual((response.body, response.get("content-length")), (PAGE, str(len(PAGE))))
            self.assertEqual(response.get("content-encoding"), coding)

    def test_a_body_without_length_ends_with_its_connection(self):
        self.answer(head("200 OK", "content-type: text/html", "connection: close") + PAGE)
        self.assertEqual(self.envoy.get(PAGE_HOST).body, MOVED)

    def test_the_page_of_an_http_1_0_origin_is_rewritten(self):
        answer = head("200 OK", "content-type: text/html", "connection: close").replace(b"HTTP/1.1", b"HTTP/1.0")
        self.answer(answer + PAGE)
        response = self.envoy.get(PAGE_HOST)
        self.assertEqual((response.status, response.body, response.complete), (200, MOVED, True))

    def test_http_1_0_clients_get_the_page_until_the_end_of_the_connection(self):
        self.answer(ok(PAGE))
        response = self.envoy.get(PAGE_HOST, version="1.0")
        self.assertEqual((response.status, response.body), (200, MOVED))
        self.assertIsNone(response.get("transfer-encoding"))

    def test_a_tag_that_never_ends_is_not_held_back_for_ever(self):
        rest = b"<img alt='" + b"x" * 600_000
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.origin.answer = Answer(chunked([PAGE + rest, b"y"]), gates=[opened := threading.Event(), gate])
        opened.set()
        with self.envoy.connect() as connection:
            connection.sendall(f"GET / HTTP/1.1\r\nhost: {PAGE_HOST}\r\n\r\n".encode())
            received = b""
            arriving = chunks(connection)
            # While the origin is silent, the filter forwards everything except the bytes that its memory limits allow
            # it to hold.
            while len(received) < len(MOVED) + len(rest) - 262_144:
                received += next(arriving)
            gate.set()
            for piece in arriving:
                received += piece
        self.assertEqual(received, MOVED + rest + b"y")

    def test_a_page_cut_off_by_its_origin_is_cut_off_for_the_client_too(self):
        self.answer(*chunked([PAGE], "connection: close")[:2])
        response = self.envoy.get(PAGE_HOST)
        self.assertFalse(response.complete)
        self.assertTrue(MOVED.startswith(response.body[:-1]))

    def get_with_trailers(self, *pieces: bytes) -> bytes:
        *page, _ = chunked(list(pieces))
        self.answer(*page, b"0\r\nx-checksum: 1\r\n\r\n")
        with self.envoy.connect() as connection:
            connection.sendall(f"GET / HTTP/1.1\r\nhost: {PAGE_HOST}\r\nte: trailers\r\n\r\n".encode())
            raw = b""
            while not raw.endswith(b"x-checksum: 1\r\n\r\n"):
                piece = connection.recv(65536)
                self.assertTrue(piece, "the connection ended before the trailers")
                raw += piece
            return raw

    def test_trailers_follow_a_rewritten_page(self):
        before = self.envoy.metric("bail_outs_total_reason_trailers")
        raw = self.get_with_trailers(PAGE, b"<p>end</p>")
        self.assertIn(b"http://198.51.100.12:8080/i.cnn.net/plane.jpg", raw)
        self.assertIn(b"<p>end</p>", raw)
        self.assertEqual(self.envoy.metric("bail_outs_total_reason_trailers"), before)

    def test_trailers_in_the_middle_of_a_tag_are_counted_because_no_proxy_wasm_filter_can_send_it_any_more(self):
        before = self.envoy.metric("bail_outs_total_reason_trailers")
        raw = self.get_with_trailers(PAGE, b"<img src='http://i.cn")
        self.assertIn(b"caf\xe9 &amp; more", raw)
        self.assertEqual(self.envoy.metric("bail_outs_total_reason_trailers"), before + 1)

    def test_announced_trailers_leave_the_page_untouched(self):
        pieces = chunked([PAGE], "trailer: x-checksum")
        self.answer(*pieces)
        self.assertEqual(self.envoy.get(PAGE_HOST).body, PAGE)


def in_pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


class Packed(InEnvoy):
    """Pages in gzip, or with a header that says so."""

    GZIP = "content-encoding: gzip"

    def broken(self) -> int:
        return self.envoy.metric("broken_total")

    def test_a_compressed_page_leaves_plain_and_rewritten_at_every_chunk_size(self):
        broken = self.broken()
        body, expected = (page + b"<p>some text of a page</p>\n" * 40_000 + page for page in (PAGE, MOVED))
        self.answer(ok(gzip.compress(PAGE), self.GZIP))
        response = self.envoy.get(PAGE_HOST)
        self.assertEqual((response.status, response.body, response.complete), (200, MOVED, True))
        self.assertEqual((response.get("content-encoding"), response.get("content-length")), (None, None))
        for size, plain, rewritten in [
            (1, PAGE, MOVED),
            (7, PAGE, MOVED),
            (1000, body, expected),
            (1 << 20, body, expected),
        ]:
            with self.subTest(size=size):
                self.answer(*chunked(in_pieces(gzip.compress(plain), size), self.GZIP))
                response = self.envoy.get(PAGE_HOST)
                self.assertEqual((response.body, response.complete), (rewritten, True))
        self.assertEqual(self.broken(), broken)

    def test_a_moved_style_sheet_may_be_compressed_too(self):
        self.answer(ok(gzip.compress(b"a{b:url(http://i.cnn.net/x.png)}"), self.GZIP, kind="text/css"))
        response = self.envoy.get(PROXY, "/static.example/a.css", "accept: text/css,*/*;q=0.1")
        self.assertEqual(response.body, b"a{b:url(http://198.51.100.12:8080/i.cnn.net/x.png)}")
        self.assertIsNone(response.get("content-encoding"))

    def test_unchanged_responses_stay_compressed(self):
        packed = gzip.compress(PAGE)
        for answer in [
            ok(packed, self.GZIP, "cache-control: no-transform"),
            ok(packed, self.GZIP, kind="text/css"),
            ok(packed, self.GZIP, kind="image/svg+xml"),
        ]:
            self.answer(answer)
            response = self.envoy.get(PAGE_HOST)
            self.assertEqual((response.body, response.get("content-encoding")), (packed, "gzip"))

    def test_a_head_request_for_a_compressed_page_gets_the_pages_headers(self):
        self.answer(head("200 OK", "content-type: text/html", "content-length: 99", self.GZIP))
        response = self.envoy.get(PAGE_HOST, method="HEAD")
        self.assertEqual((response.status, response.get("content-encoding")), (200, None))
        self.assertIsNone(response.get("content-length"))

    def test_a_page_with_a_false_content_encoding_loses_no_byte(self):
        for size in [1, 2, 1 << 20]:
            self.answer(*chunked(in_pieces(PAGE, size), self.GZIP))
            response = self.envoy.get(PAGE_HOST)
            self.assertEqual((response.body, response.complete), (MOVED, True))
            self.assertIsNone(response.get("content-encoding"))

    def test_every_piece_of_a_compressed_page_leaves_when_it_arrives(self):
        packer = zlib.compressobj(wbits=31)
        pieces = [b"<img src=http://i.cnn.net/%d.png>" % index for index in range(3)]
        packed = [packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) for piece in pieces]
        gates = [threading.Event() for _ in range(len(pieces) + 2)]
        self.origin.answer = Answer(chunked([*packed, packer.flush()], self.GZIP), gates=gates)
        with self.envoy.connect() as connection:
            connection.sendall(f"GET / HTTP/1.1\r\nhost: {PAGE_HOST}\r\n\r\n".encode())
            gates[0].set()
            for index, piece in zip(range(len(pieces)), chunks(connection), strict=False):
                self.assertEqual(piece, b"<img src=http://198.51.100.12:8080/i.cnn.net/%d.png>" % index)
                gates[index + 1].set()
            gates[-1].set()

    def test_a_truncated_or_damaged_compressed_page_is_a_prefix_and_looks_broken(self):
        body = PAGE + b"".join(b"<p>line %d of a page</p>\n" % line for line in range(9000))
        expected = MOVED + body.removeprefix(PAGE)
        packed = gzip.compress(body)
        half = len(packed) // 2
        for what, sent in [("cut off", packed[:half]), ("damaged", packed[:half] + b"\xff" * 70_000)]:
            with self.subTest(what=what):
                before = self.broken()
                self.answer(*chunked(in_pieces(sent, 2000), self.GZIP))
                response = self.envoy.get(PAGE_HOST)
                self.assertFalse(response.complete, "it must not look whole")
                self.assertGreater(len(response.body), half)
                # The decoder notices damage only after a few wrong letters.
                self.assertEqual(response.body[:half], expected[:half])
                self.assertEqual(self.broken(), before + 1)

    def test_a_compressed_page_without_its_checksum_is_complete(self):
        self.answer(ok(gzip.compress(PAGE)[:-8], self.GZIP))
        response = self.envoy.get(PAGE_HOST)
        self.assertEqual((response.body, response.complete), (MOVED, True))

    def test_a_page_that_compresses_a_thousandfold_arrives_whole(self):
        """A chunk of the origin's connection has 32 KiB, so its content stays below the limit of one call."""
        size = 64 << 20
        self.answer(ok(gzip.compress(b" " * size), self.GZIP))
        before, came = self.broken(), 0
        with self.envoy.connect() as connection:
            # HTTP/1.0 has no chunks, whose end a reader would have to find.
            connection.sendall(f"GET / HTTP/1.0\r\nhost: {PAGE_HOST}\r\n\r\n".encode())
            while piece := connection.recv(1 << 20):
                came += piece.count(b" ")
        self.assertGreaterEqual(came, size)
        self.assertEqual(self.broken(), before)
        self.answer(ok(PAGE))
        self.assertEqual(self.envoy.get(PAGE_HOST).body, MOVED)


class Exchanges(InEnvoy):
    def test_head_tells_no_length_and_sends_no_body(self):
        self.answer(head("200 OK", "content-type: text/html", f"content-length: {len(PAGE)}", 'etag: "a"'))
        response = self.envoy.get(PAGE_HOST, method="HEAD")
        self.assertEqual((response.status, response.body), (200, b""))
        self.assertIsNone(response.get("content-length"))
        self.assertRegex(response.get("etag") or "", '^W/"a;lh=')

    def test_statuses_without_a_whole_body_pass_untouched(self):
        self.answer(head("204 No Content", "content-type: text/html"))
        self.assertEqual(self.envoy.get(PAGE_HOST).status, 204)
        part = head("206 Partial Content", "content-type: text/html", f"content-range: bytes 0-{len(PAGE) - 1}/9999")
        self.answer(part.replace(b"\r\n\r\n", b"\r\ncontent-length: %d\r\n\r\n" % len(PAGE)) + PAGE)
        response = self.envoy.get(PAGE_HOST, "/", "range: bytes=0-99")
        self.assertEqual((response.status, response.body), (206, PAGE))
        self.assertEqual(response.get("content-length"), str(len(PAGE)))

    def test_a_browser_that_has_the_page_gets_a_304_for_the_origins_tag(self):
        self.answer(ok(PAGE, 'etag: "a"'))
        tag = self.envoy.get(PAGE_HOST).get("etag")
        self.answer(head("304 Not Modified", 'etag: "a"'))
        response = self.envoy.get(PAGE_HOST, "/", f"if-none-match: {tag}")
        self.assertEqual((response.status, response.get("etag")), (304, tag))
        self.assertEqual(self.origin.requests[-1].get("if-none-match"), '"a"')

    def test_a_websocket_is_opened_and_its_bytes_are_nobodys_business(self):
        self.answer(
            head("101 Switching Protocols", "upgrade: websocket", "connection: upgrade", "content-type: text/html")
        )
        with self.envoy.connect() as connection:
            connection.sendall(
                f"GET /ws HTTP/1.1\r\nhost: {PAGE_HOST}\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n".encode()
            )
            self.assertEqual(read_response(connection).status, 101)
            connection.sendall(PAGE)
            echoed = b""
            while len(echoed) < len(PAGE):
                echoed += connection.recv(65536)
            self.assertEqual(echoed, PAGE)

    def test_a_page_that_the_origin_sends_in_pieces_arrives_in_pieces(self):
        pieces = [b"<img src=http://i.cnn.net/%d.png>" % index for index in range(4)]
        gates = [threading.Event() for _ in range(len(pieces) + 1)]
        self.origin.answer = Answer(chunked(pieces), gates=gates)
        with self.envoy.connect() as connection:
            connection.sendall(f"GET / HTTP/1.1\r\nhost: {PAGE_HOST}\r\n\r\n".encode())
            gates[0].set()
            for index, piece in zip(range(len(pieces)), chunks(connection), strict=False):
                # The origin holds the next piece until this one has arrived here.
                self.assertEqual(piece, b"<img src=http://198.51.100.12:8080/i.cnn.net/%d.png>" % index)
                self.assertTrue(is_quiet(connection, 0.05))
                gates[index + 1].set()

    def test_a_client_that_leaves_mid_page_costs_only_its_page(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        pieces = chunked([PAGE, PAGE])
        self.origin.answer = Answer(pieces, gates=[gate_open := threading.Event(), gate])
        gate_open.set()
        before = self.envoy.metric("bytes_in_total")
        with self.envoy.connect() as connection:
            connection.sendall(f"GET / HTTP/1.1\r\nhost: {PAGE_HOST}\r\n\r\n".encode())
            self.assertTrue(next(chunks(connection)))
        wait_for("the half page to be counted", lambda: self.envoy.metric("bytes_in_total") == before + len(PAGE))
        gate.set()
        self.answer(ok(PAGE))
        self.assertEqual(self.envoy.get(PAGE_HOST).body, MOVED)

    def test_many_pages_on_one_connection(self):
        self.answer(ok(PAGE))
        with self.envoy.connect() as connection:
            for _ in range(20):
                connection.sendall(f"GET / HTTP/1.1\r\nhost: {PAGE_HOST}\r\n\r\n".encode())
                self.assertEqual(read_response(connection).body, MOVED)

    def test_counters_count(self):
        self.answer(ok(PAGE))
        names = [
            "pages_total",
            "urls_moved_total",
            "urls_left_total_reason_same_host",
            "bytes_in_total",
            "bytes_out_total",
        ]
        before = [self.envoy.metric(name) for name in names]
        self.envoy.get(PAGE_HOST)
        after = [self.envoy.metric(name) for name in names]
        counted = [new - old for old, new in zip(before, after, strict=True)]
        self.assertEqual(counted, [1, 5, 1, len(PAGE), len(MOVED)])


class ProxyOrigin(InEnvoy):
    def test_an_object_comes_from_its_true_url_without_credentials_either_way(self):
        self.answer(ok(b"png", "set-cookie: a=b", "access-control-allow-origin: *", kind="image/png"))
        headers = ["cookie: c=d", "authorization: Basic x", "x-longhaul-scheme: https", "accept: image/*"]
        response = self.envoy.get(PROXY, "/i.cnn.net:8080/plane.jpg?x=%2f", *headers)
        request = self.asked()
        self.assertEqual(request.line, b"GET /plane.jpg?x=%2f HTTP/1.1")
        self.assertEqual((request.get("host"), request.get("x-longhaul-scheme")), ("i.cnn.net:8080", "http"))
        self.assertIsNone(request.get("cookie"))
        self.assertIsNone(request.get("authorization"))
        self.assertEqual((response.status, response.body), (200, b"png"))
        self.assertIsNone(response.get("set-cookie"))
        self.assertEqual(response.get("content-security-policy"), "sandbox")
        self.assertEqual(response.get("x-content-type-options"), "nosniff")
        self.assertEqual(response.get("cross-origin-resource-policy"), "cross-origin")
        self.assertEqual(response.get("access-control-allow-origin"), "*")

    def test_a_moved_sheet_is_rewritten_with_its_true_url_as_base(self):
        self.answer(ok(b"a{b:url(/x.png)}c{d:url(y.png)}e{f:url(//static.bank.example/z.png)}", kind="text/css"))
        response = self.envoy.get(PROXY, "/cdn.example/css/a.css", "accept: text/css,*/*;q=0.1")
        self.assertEqual(
            response.body,
            b"a{b:url(http://198.51.100.12:8080/cdn.example/x.png)}c{d:url(y.png)}e{f:url(//static.bank.example/z.png)}",
        )

    def test_navigations_and_workers_are_sent_to_the_true_url_without_asking_the_origin(self):
        for header in [
            "sec-fetch-dest: document",
            "sec-fetch-dest: iframe",
            "sec-fetch-dest: worker",
            "sec-fetch-mode: navigate",
            "service-worker: script",
            "upgrade-insecure-requests: 1",
            "accept: text/html,application/xhtml+xml",
        ]:
            with self.subTest(header=header):
                response = self.envoy.get(PROXY, "/i.cnn.net/page?x", header, "referer: http://www.cnn.net/")
                self.assertEqual((response.status, response.get("location")), (307, "http://i.cnn.net/page?x"))
                self.assertEqual(response.get("cache-control"), "no-store")
        self.assertEqual(self.origin.requests, [])

    def test_a_path_that_names_no_object_is_refused_without_a_request_to_an_origin(self):
        for path, status in [
            ("/", 404),
            ("/favicon.ico", 403),
            ("/localhost/x", 403),
            ("/i.cnn.net:22/x", 403),
            ("/i.cnn.net:99999/x", 403),
            ("/198.51.100.12:8080/x", 403),
            ("/I.cnn.net/x", 403),
        ]:
            with self.subTest(path=path):
                response = self.envoy.get(PROXY, path)
                self.assertEqual(response.status, status)
                self.assertEqual(response.body.count(b"\n"), 1)
        self.assertEqual(self.envoy.get("www.foo.example:22").status, 403)
        self.assertEqual(self.origin.requests, [])
        self.assertGreaterEqual(self.envoy.metric("refused_total_reason_no_host"), 1)

    def test_a_script_with_a_wrong_type_is_not_served_from_an_http_address(self):
        self.answer(ok(b"alert(1)", kind="text/plain"))
        response = self.envoy.get(PROXY, "/cdn.example/x", "accept: */*")
        self.assertEqual((response.status, response.get("location")), (307, "http://cdn.example/x"))
        self.answer(ok(b"alert(1)", kind="text/javascript"))
        self.assertEqual(self.envoy.get(PROXY, "/cdn.example/x", "accept: */*").body, b"alert(1)")

    def test_redirects_stay_in_the_prefix_space(self):
        self.answer(head("302 Found", "location: /elsewhere.png", "content-length: 0"))
        response = self.envoy.get(PROXY, "/i.cnn.net/plane.jpg", "accept: image/*")
        self.assertEqual(response.get("location"), "http://198.51.100.12:8080/i.cnn.net/elsewhere.png")

    def test_the_proxys_own_errors_do_not_trouble_the_filter(self):
        self.origin.answer = Answer([b"nonsense\r\n\r\n"])
        self.assertIn(self.envoy.get(PAGE_HOST).status, (502, 503))
        self.answer(ok(PAGE))
        self.assertEqual(self.envoy.get(PAGE_HOST).body, MOVED)


class Configuration(unittest.TestCase):
    def refusal(self, config: dict | str) -> str:
        origin = Origin(InEnvoy.nothing)
        self.addCleanup(origin.close)
        with self.assertRaises(AssertionError) as refused:
            Envoy(origin, config).close()
        return str(refused.exception)

    def test_a_configuration_that_cannot_be_meant_is_refused_with_the_place(self):
        for config, message in [
            ({**CONFIG, "levle": "safe"}, "unknown field `levle`"),
            (
                {**CONFIG, "targets": {"https": ["x.example"], "http": []}},
                "targets.https[0]: expected one of the authorities",
            ),
            ("not json", "expected ident at line 1 column 2"),
        ]:
            with self.subTest(message=message):
                self.assertIn(message, self.refusal(config))

    def test_with_level_off_every_byte_passes(self):
        origin = Origin(Answer([ok(PAGE, 'etag: "a"')]))
        self.addCleanup(origin.close)
        envoy = Envoy(origin, {**CONFIG, "level": "off"})
        self.addCleanup(envoy.close)
        response = envoy.get(PAGE_HOST)
        self.assertEqual((response.body, response.get("etag")), (PAGE, '"a"'))
        self.assertEqual(response.get("content-length"), str(len(PAGE)))


PANICKING = os.environ.get("LONGHAUL_URL_REWRITE_PANIC_WASM", "")


@unittest.skipUnless(PANICKING, "LONGHAUL_URL_REWRITE_PANIC_WASM names no build with --features panic-for-tests")
class AfterAPanic(unittest.TestCase):
    def test_the_filter_is_back_for_the_next_page_and_the_log_says_where_it_was(self):
        origin = Origin(Answer([ok(PAGE)]))
        self.addCleanup(origin.close)
        envoy = Envoy(origin, module=Path(PANICKING), engine="wasm")
        self.addCleanup(envoy.close)
        self.assertEqual(envoy.get(PAGE_HOST).body, MOVED)
        self.assertNotEqual(envoy.get(PAGE_HOST, "/", "x-panic-for-tests: 1").status, 200)
        wait_for("the filter to be back", lambda: envoy.get(PAGE_HOST).body == MOVED)
        self.assertIn("asked to panic by x-panic-for-tests", envoy.log)


PANICKING_NATIVE = os.environ.get("LONGHAUL_NATIVE_PANIC", "")


@unittest.skipUnless(PANICKING_NATIVE, "LONGHAUL_NATIVE_PANIC names no native build with --features panic-for-tests")
class AfterANativePanic(unittest.TestCase):
    """A panic in the module that runs in Envoy's own process."""

    def test_a_panic_costs_one_stream_and_is_counted_and_logged_once(self):
        gate = threading.Event()
        origin = Origin(Answer(chunked([PAGE, b"<p>the end"]), [gate]))
        self.addCleanup(origin.close)
        self.addCleanup(gate.set)
        envoy = Envoy(origin, module=Path(PANICKING_NATIVE), engine="native")
        self.addCleanup(envoy.close)
        pages: list[bytes] = []
        in_flight = threading.Thread(target=lambda: pages.append(envoy.get(PAGE_HOST).body))
        in_flight.start()
        wait_for("the page to be in flight", lambda: len(origin.requests) == 1)
        for _ in range(3):
            self.assertEqual(envoy.get(PAGE_HOST, "/", "x-panic-for-tests: 1").status, 500)
        self.assertEqual(len(origin.requests), 1)
        gate.set()
        in_flight.join()
        self.assertEqual(pages, [MOVED + b"<p>the end"])
        self.assertEqual(envoy.get(PAGE_HOST).body, MOVED + b"<p>the end")
        self.assertEqual(envoy.metric("panics_total"), 3)
        self.assertEqual(envoy.log.count("asked to panic by x-panic-for-tests"), 1, envoy.log)


if __name__ == "__main__":
    unittest.main()
