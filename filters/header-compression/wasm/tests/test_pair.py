"""The filter in two real Envoys: at both ends of the pipe, at one, at none."""

import concurrent.futures
import contextlib
import io
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "integration"))

from harness.origins.http1 import Fields, Message, Origin, message, read_response
from pair_bed import GROUND, REMOTE, Pair

OURS = (b"x-longhaul-headers", b"x-longhaul-retry")
BROWSER: Fields = [
    (b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"),
    (b"accept", b"text/html,application/xhtml+xml,*/*;q=0.8"),
    (b"accept-language", b"en-US,en;q=0.5"),
    (b"cookie", b"session=0123456789abcdef; theme=dark;odd=1; ; last="),
    (b"x-twice", b"1"),
    (b"x-bytes", b"caf\xe9 \x80\xff~!"),
    (b"x-twice", b"1"),
    (b"x-empty", b""),
]
ANSWER: Fields = [
    (b"date", b"Sat, 14 Nov 2026 09:12:41 GMT"),
    (b"server", b"example"),
    (b"set-cookie", b"session=0123456789abcdef; path=/; HttpOnly"),
    (b"content-type", b"text/html; charset=utf-8"),
    (b"set-cookie", b"theme=dark; expires=Sun, 06 Nov 2044 08:49:37 GMT"),
    (b"etag", b'"5e1f-abc"'),
    (b"x-bytes", b"\xff\x80caf\xe9"),
    (b"x-empty", b""),
]


class Given(io.BytesIO):
    """Bytes to be read as from a socket."""

    recv = io.BytesIO.read


def answer(request: Message) -> Iterator[bytes]:
    """Returns the response for a path: /204, /304, /404, /large, /ours, or a page whose body names the path."""
    path = request.line.split(b" ")[1]
    body = b"" if request.line.startswith(b"HEAD") or path in (b"/204", b"/304") else b"answer to " + path
    length = [] if path in (b"/204", b"/304") else [(b"content-length", b"%d" % (len(body) or 10))]
    extra = {
        b"/large": [(b"x-large-%d" % number, b"v" * 300) for number in range(90)],
        b"/ours": [(name, b"from the origin") for name in OURS],
    }.get(path, [])
    status = path[1:] if path in (b"/204", b"/304", b"/404") else b"200"
    yield message(b"HTTP/1.1 " + status + b" x", [*ANSWER, *extra, *length], body)


def by_name(fields: Fields) -> list[tuple[bytes, list[bytes]]]:
    """Groups the values of each name in their order. Envoy's own order of names differs between HTTP/1.1 and HTTP/2."""
    names = sorted({name.lower() for name, _ in fields})
    return [(name, [value for known, value in fields if known.lower() == name]) for name in names]


class InPair(unittest.TestCase):
    """One pair for all tests of a class."""

    remote: ClassVar[dict | None] = REMOTE
    ground: ClassVar[dict | None] = GROUND
    concurrency = 1
    pair: Pair

    @classmethod
    def setUpClass(cls) -> None:
        origin = Origin(answer)
        cls.addClassCleanup(origin.close)
        cls.pair = Pair(cls.remote, cls.ground, origin, concurrency=cls.concurrency)
        cls.addClassCleanup(cls.pair.close)

    def setUp(self) -> None:
        self.pair.origin.requests.clear()
        self.client = self.pair.connect()
        self.addCleanup(self.client.close)

    def assert_passes(self, method: bytes, path: bytes, fields: Fields, body: bytes = b"") -> Message:
        """Asserts that a request reaches the origin unchanged, and its response the client."""
        before = len(self.pair.origin.requests)
        got = self.client.ask(method, b"www.example.org", path, fields, body)
        requests = self.pair.origin.requests[before:]
        self.assertEqual([request.line for request in requests], [b" ".join([method, path, b"HTTP/1.1"])])
        sent = [(b"host", b"www.example.org"), (b"x-forwarded-proto", b"http"), *fields]
        sent += [(b"content-length", b"%d" % len(body))] if body else []
        self.assertEqual(by_name(requests[0].fields), by_name(sent))
        self.assertEqual(requests[0].body, body)
        expected = read_response(Given(b"".join(answer(requests[0]))), method.decode())
        expected.fields = [(name, value) for name, value in expected.fields if name not in OURS]
        self.assertEqual(by_name(got.fields), by_name(expected.fields))
        self.assertEqual(got.body, expected.body)
        return got

    def passes_everything(self) -> None:
        for _ in range(3):
            self.assert_passes(b"GET", b"/page?a=b&c=%20", BROWSER)
            self.assert_passes(b"HEAD", b"/page", BROWSER)
            self.assert_passes(b"POST", b"/form", BROWSER, b"field=value")
            self.assert_passes(b"PUT", b"/upload", BROWSER, b"u" * 200_000)
            self.assert_passes(b"DELETE", b"/thing", [])
            for path in (b"/204", b"/304", b"/404", b"/large"):
                self.assert_passes(b"GET", path, BROWSER)

    def passes_a_hundred_requests_at_once(self) -> None:
        def one(number: int) -> None:
            with contextlib.closing(self.pair.connect(f"127.0.0.{1 + number % 7}")) as client:
                for turn in range(5):
                    path = b"/%d/%d" % (number, turn)
                    got = client.ask(b"GET", b"h%d.example.org" % (number % 5), path, BROWSER)
                    self.assertEqual((got.status, got.body), (200, b"answer to " + path))

        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            for future in [pool.submit(one, number) for number in range(100)]:
                future.result()
        self.assertEqual(len(self.pair.origin.requests), 500)
        self.assertEqual(self.pair.remote.packing()["undecodable_total"], 0)

    def passes_an_upgrade(self) -> None:
        self.client.socket.sendall(
            message(
                b"GET /chat HTTP/1.1",
                [(b"host", b"www.example.org"), (b"connection", b"upgrade"), (b"upgrade", b"websocket")],
            )
        )
        self.assertEqual(read_response(self.client.socket).status, 101)
        self.client.socket.sendall(b"ping")
        self.assertEqual(self.client.socket.recv(4), b"ping")


def switching(request: Message) -> Iterator[bytes]:
    if request.get("upgrade"):
        yield message(b"HTTP/1.1 101 x", [(b"connection", b"upgrade"), (b"upgrade", b"websocket")])
    else:
        yield from answer(request)


class OnBothSides(InPair):
    def test_every_kind_of_request_and_response_passes_as_it_was(self) -> None:
        self.passes_everything()
        remote, ground = self.pair.remote.packing(), self.pair.ground.packing()
        self.assertGreater(remote["referring_total"], 20)
        self.assertEqual(remote["undecodable_total"], 0)
        troubles = ("retried", "refused", "undecodable")
        for side in (remote, ground):
            seen = {name: count for name, count in side.items() if name.startswith(troubles) and count}
            self.assertEqual(seen, {})
        self.assertGreater(ground["plain_total_reason_block"] + ground["packed_total"], 20)

    def test_repeated_headers_cost_a_few_bytes(self) -> None:
        for _ in range(4):
            self.assert_passes(b"GET", b"/again", BROWSER)
        self.assertLess(self.pair.tap.to_ground.blocks[-1], 9 + 24)
        self.assertLess(self.pair.tap.to_remote.blocks[-1], 9 + 16)

    def test_a_websocket_is_left_alone(self) -> None:
        self.pair.origin.answer = switching
        self.addCleanup(setattr, self.pair.origin, "answer", answer)
        self.passes_an_upgrade()

    def test_internal_fields_from_clients_and_origins_are_removed(self) -> None:
        forged = [(name, b"forged") for name in OURS]
        before = len(self.pair.origin.requests)
        got = self.client.ask(b"GET", b"www.example.org", b"/ours", [*BROWSER, *forged])
        self.assertEqual(got.status, 200)
        [request] = self.pair.origin.requests[before:]
        for name in OURS:
            self.assertEqual(request.all(name.decode()) + got.all(name.decode()), [])

    def test_a_hundred_requests_at_once_all_arrive(self) -> None:
        self.passes_a_hundred_requests_at_once()

    def test_after_an_outage_of_the_pipe_requests_pass_on_a_new_connection(self) -> None:
        self.assert_passes(b"GET", b"/before", BROWSER)
        connections = self.pair.tap.connections
        self.pair.tap.cut()
        self.pair.wait_for_the_end_of_the_pipe()
        for _ in range(3):
            self.assert_passes(b"GET", b"/after", BROWSER)
        self.assertEqual(self.pair.tap.connections, connections + 1)


class WhenAnEndIsRestarted(InPair):
    def passes_and_refers_again(self) -> None:
        for _ in range(3):
            self.assert_passes(b"GET", b"/page", BROWSER)
        self.assertLess(self.pair.tap.to_ground.blocks[-1], 9 + 24)
        for side in (self.pair.remote.packing(), self.pair.ground.packing()):
            self.assertEqual(side["undecodable_total"], 0)

    def test_a_ground_that_knows_nothing_any_more_gets_what_it_can_read(self) -> None:
        self.passes_and_refers_again()
        self.pair.restart_ground()
        self.pair.wait_for_the_end_of_the_pipe()
        self.passes_and_refers_again()

    def test_a_remote_that_knows_nothing_any_more_begins_anew(self) -> None:
        self.passes_and_refers_again()
        self.client.close()
        self.pair.restart_remote()
        self.client = self.pair.connect()
        self.addCleanup(self.client.close)
        self.passes_and_refers_again()
        self.assertEqual(self.pair.ground.packing()["refused_total_reason_history"], 0)


class OnBothSidesWithTwoWorkersEach(InPair):
    concurrency = 2

    def test_requests_of_many_clients_over_connections_of_both_workers_all_arrive(self) -> None:
        self.passes_a_hundred_requests_at_once()
        self.passes_everything()


class OnTheRemoteOnly(InPair):
    ground = None

    def test_the_ground_gets_plain_headers_and_every_request_once(self) -> None:
        self.passes_everything()
        counters = self.pair.remote.packing()
        self.assertEqual(counters["retried_total_reason_peer"], 1, "one try, and not again for a minute")
        self.assertEqual(counters["packed_total"], 1)


class OnTheGroundOnly(InPair):
    remote = None

    def test_the_remote_never_gets_a_compressed_field(self) -> None:
        self.passes_everything()
        self.assertEqual(self.pair.ground.packing()["packed_total"], 0)

    def test_only_a_client_that_invents_compressed_headers_is_refused(self) -> None:
        for field in (b"*xxxxxxx", b")xxxx", b"nonsense", b")" + b"~" * 5000):
            got = self.client.ask(b"GET", b"www.example.org", b"/", [(OURS[0], field)])
            self.assertEqual(got.status, 421, field)
        self.assertEqual(self.pair.origin.requests, [])
        self.assert_passes(b"GET", b"/page", BROWSER)


class OnNeitherSide(InPair):
    remote = None
    ground = None

    def test_the_same_passes_without_us(self) -> None:
        self.passes_everything()


class WithAForgetfulGround(InPair):
    ground: ClassVar[dict | None] = {**GROUND, "clients": 1}

    def test_a_request_that_refers_to_what_is_forgotten_is_sent_again_and_arrives_once(self) -> None:
        clients = [self.pair.connect(f"127.0.0.{number}") for number in (2, 3)]
        for client in clients:
            self.addCleanup(client.close)
        for turn in range(6):
            for number, client in enumerate(clients):
                path = b"/%d/%d" % (number, turn)
                got = client.ask(b"GET", b"www.example.org", path, BROWSER)
                self.assertEqual((got.status, got.body), (200, b"answer to " + path))
                got = client.ask(b"POST", b"www.example.org", path, BROWSER, b"body of " + path)
                self.assertEqual((got.status, got.body), (200, b"answer to " + path))
        bodies = [request.body for request in self.pair.origin.requests if request.body]
        self.assertEqual(len(bodies), 12)
        self.assertEqual(len(self.pair.origin.requests), 24, "each once")
        self.assertGreater(self.pair.remote.packing()["retried_total_reason_history"], 5)
        self.assertEqual(
            self.pair.ground.packing()["refused_total_reason_history"],
            self.pair.remote.packing()["retried_total_reason_history"],
        )


class WithABadConfiguration(unittest.TestCase):
    def test_envoy_refuses_to_start_and_says_what_was_expected(self) -> None:
        with self.assertRaisesRegex(AssertionError, "unknown field `role_`.*expected for example"):
            Pair(ground='{"role": "ground", "role_": 1}').close()


if __name__ == "__main__":
    unittest.main()
