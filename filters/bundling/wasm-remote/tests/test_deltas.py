"""The remote's bundling filter in Envoy, before a ground that lies: lost bases and pages that are not the ground's."""

import contextlib
import hashlib
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path

import brotli

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "integration"))

from harness.boxes import filters
from harness.origins.http1 import Client, Message, Origin, message

FIRST = b"<!doctype html><title>first</title>" + b"<p>a line of the site" * 99
SECOND = b"<!doctype html><title>second</title>" + b"<p>a line of the site" * 99
HOST = b"www.site.test"
PACKED = (b"content-encoding", b"x-longhaul-br")


def ground(request: Message) -> Iterator[bytes]:
    """A ground that names bases which nobody has, or sends other pages than it says."""
    path = request.line.split(b" ")[1]
    if path == b"/first":
        yield page(FIRST, (b"x-longhaul-base", b"keep"))
    elif path == b"/mismatch":
        # A higher quality refers to brotli's own dictionary, which stands behind the base.
        delta = brotli.compress(SECOND, quality=1) + bytes(24)
        yield page(delta, (b"x-longhaul-base", hashlib.sha256(FIRST).hexdigest()[:48].encode()), PACKED)
    elif request.get("x-longhaul-base") not in (None, "none"):
        yield page(b"junk" * 9999, (b"x-longhaul-base", b"7" * 48), PACKED)
    elif path.startswith(b"/plain"):
        yield page(SECOND, (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"))
    elif path == b"/br":
        yield page(brotli.compress(SECOND), (b"content-encoding", b"br"), (b"etag", b'"x"'))


def page(body: bytes, *fields: tuple[bytes, bytes]) -> bytes:
    """Returns a page as the ground sends it."""
    told = [(b"content-type", b"text/html"), (b"content-length", b"%d" % len(body)), *fields]
    return message(b"HTTP/1.1 200 OK", told, body)


class Remote(filters.Envoy):
    """An Envoy with the filter of a remote."""

    def __init__(self, ground_port: int) -> None:
        link = {"rtt_ms": 600, "down": 99999, "up": 99999}
        own = {"role": "remote", "cluster": "pipe", **link, "flights": False, "deltas": True}
        bundling = filters.http_filter("remote", "bundling", own)
        super().__init__(filters.bootstrap("pipe", filters.address(ground_port), [bundling]))

    def metric(self, name: str) -> int:
        """Returns a counter of the filter."""
        return self.counters("bundling").get(name, 0)

    def get(self, path: str) -> Message:
        """Loads a page as a browser does."""
        with contextlib.closing(Client(self.port)) as client:
            return client.ask(b"GET", HOST, path.encode(), [(b"accept", b"text/html,*/*;q=0.8")])


class TestDeltas(unittest.TestCase):
    """Pages after the first one of a site."""

    @classmethod
    def setUpClass(cls) -> None:
        """Starts both ends, and loads the page that becomes the base."""
        cls.ground = Origin(ground)
        cls.addClassCleanup(cls.ground.close)
        cls.remote = Remote(cls.ground.port)
        cls.addClassCleanup(cls.remote.close)
        got = cls.remote.get("/first")
        assert (got.status, got.body) == (200, FIRST), got
        assert not [name for name, _ in got.fields if name.startswith(b"x-longhaul")], got
        [asked] = cls.ground.requests
        assert (asked.get("x-longhaul-takes"), asked.get("x-longhaul-base")) == ("br, delta", None), asked

    def asked(self, path: str) -> list[tuple[str | None, str | None]]:
        """Returns the offers and the bases of the requests for a path that the ground has seen."""
        return [
            (one.get("x-longhaul-takes"), one.get("x-longhaul-base"))
            for one in self.ground.requests
            if one.line.split()[1].decode() == path
        ]

    def test_a_page_whose_base_is_lost_is_requested_once_more_and_arrives(self) -> None:
        short = hashlib.sha256(FIRST).hexdigest()[:16]
        for path in ("/plain", "/br"):
            lost = self.remote.metric("base_lost_total")
            got = self.remote.get(path)
            self.assertEqual((got.status, got.body), (200, SECOND))
            self.assertEqual(self.asked(path), [("br, delta", short), ("br", "none")])
            self.assertEqual(self.remote.metric("base_lost_total"), lost + 1)
            names = [name for name, _ in got.fields]
            self.assertFalse([name for name in names if name.startswith(b"x-longhaul") or name == b"content-encoding"])
            self.assertEqual(names.count(b"content-length"), 1)
            self.assertEqual(got.get("content-type"), "text/html")
            if path == "/plain":
                self.assertEqual(got.all("set-cookie"), ["a=1", "b=2"])
            else:
                self.assertEqual(got.get("etag"), 'W/"x"')

    def test_a_page_that_does_not_come_at_all_is_an_error_and_the_next_one_arrives(self) -> None:
        self.assertEqual(self.remote.get("/gone").status, 503)
        self.assertEqual(self.remote.get("/plain?after").body, SECOND)

    def test_a_page_that_is_not_the_grounds_is_cut_and_counted(self) -> None:
        before = self.remote.metric("broken_total_reason_mismatch")
        self.assertFalse(self.remote.get("/mismatch").complete)
        self.assertEqual(self.remote.metric("broken_total_reason_mismatch"), before + 1)


if __name__ == "__main__":
    unittest.main()
