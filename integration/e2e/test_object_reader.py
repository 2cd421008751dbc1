"""The cache of objects with the native engine: Envoy serves small fresh responses from the files of the program."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.boxes.objects_box import KEPT, WWW, ObjectsBox, Shelf, configuration, objects_box
from harness.boxes.pep import command
from harness.host.artifacts import REPOSITORY, built
from harness.host.waiting import wait_for
from harness.origins.http1 import DEADLINE_S, Message, read_response

LARGE_BYTES = 1_000_000
SLOW_CLIENTS = 10


def noise(size: int, seed: int = 1) -> bytes:
    """Returns bytes that no compression makes smaller."""
    return random.Random(seed).randbytes(size)


@dataclass
class Shop:
    """A box with the native engine, and its origin."""

    box: ObjectsBox
    shelf: Shelf

    def get(self, path: str, **fields: str) -> Message:
        """Requests an object. The fields have their names with underscores."""
        return self.box.get(path, {name.replace("_", "-"): value for name, value in fields.items()})

    def seen(self, reason: str) -> float:
        """Returns how often the reader had this outcome."""
        counts = self.box.pep.metrics()
        return counts.get(f'longhaul_object_reader_requests_total{{reason="{reason}"}}', 0)

    def put(self, path: str, body: bytes, fields: dict[str, str] | None = None) -> str:
        """Stores an object in the cache: the reader has it from now on."""
        self.shelf.put(path, body, fields or KEPT)
        assert self.get(path).body == body
        wait_for("the file", lambda: self.get(path).get("age") is not None)
        return path


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    built("longhaul_filters.so")
    folder = tmp_path_factory.mktemp("reader")
    shelf = Shelf()
    upstream = {"resolvers": ["127.0.0.1:53"], "map": {WWW: shelf.address}}
    with objects_box(folder, configuration(folder, upstream=upstream, engine="native")) as box:
        yield Shop(box, shelf)
    shelf.origin.close()


@contextmanager
def stopped(box: ObjectsBox) -> Iterator[None]:
    """Stops the program, so that it responds to nothing."""
    pid = int(box.child()["pid"])
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def fields_of(message: Message) -> list[tuple[bytes, bytes]]:
    """Returns the fields of a response, without those of time."""
    return sorted(field for field in message.fields if field[0].lower() not in (b"age", b"date"))


def test_a_hit_needs_no_program_and_is_the_programs_response(shop: Shop) -> None:
    body = noise(5000)
    path = shop.put("/hit.bin", body, {**KEPT, "ETag": '"1"', "X-Own": "yes"})
    of_program = shop.get(path, Cache_Control="max-stale=1", Range="bytes=0-")
    hits, sent = shop.seen("hit"), shop.box.sent_to_program()
    with stopped(shop.box):
        whole, part = shop.get(path), shop.get(path, Range="bytes=0-")
        unchanged, head = shop.get(path, If_None_Match='"1"'), shop.box.get(path, method="HEAD")
    assert (whole.status, whole.body, whole.get("x-own")) == (200, body, "yes")
    assert whole.get("age") is not None
    assert not [name for name, _ in whole.fields if name.startswith(b"x-longhaul")]
    assert (part.status, part.body, fields_of(part)) == (of_program.status, of_program.body, fields_of(of_program))
    assert (unchanged.status, unchanged.body) == (304, b"")
    assert (head.status, head.get("content-length"), head.body) == (200, "5000", b"")
    assert (shop.seen("hit") - hits, shop.box.sent_to_program() - sent) == (4, 0)


def test_several_ranges_and_variants_are_hits_too(shop: Shop) -> None:
    path = shop.put("/parts.bin", noise(5000), {**KEPT, "ETag": '"1"'})
    varies = {**KEPT, "Vary": "X-Kind"}
    shop.shelf.make("/vary.txt", lambda request: (200, varies, (request.get("x-kind") or "").encode()))
    for _ in range(2):
        for kind in ("one", "two"):
            assert shop.get("/vary.txt", X_Kind=kind).body == kind.encode()
    with stopped(shop.box):
        parts = shop.get(path, Range="bytes=0-9, 4000-4009")
        kinds = [shop.get("/vary.txt", X_Kind=kind).body for kind in ("one", "two")]
    assert (parts.status, parts.body.count(b"content-range: bytes")) == (206, 2)
    assert kinds == [b"one", b"two"]


def test_a_slow_client_gets_a_large_body_whole(shop: Shop) -> None:
    body = noise(LARGE_BYTES)
    path = shop.put("/large.bin", body)
    with stopped(shop.box):
        clients = [request(shop.box.http, path) for _ in range(SLOW_CLIENTS)]
        # Half of them go away in the middle of the body.
        for client in clients[::2]:
            client.recv(1000)
            client.close()
        for client in clients[1::2]:
            assert read_response(client).body == body
            client.close()
        assert shop.get(path).body == body
    assert "was killed by signal" not in shop.box.pep.output()
    assert shop.seen("busy") == 0


def request(port: int, path: str) -> socket.socket:
    """Sends a request through a connection with a small buffer, and reads nothing."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    client.settimeout(DEADLINE_S)
    client.connect(("127.0.0.1", port))
    client.sendall(f"GET {path} HTTP/1.1\r\nhost: {WWW}\r\nconnection: close\r\n\r\n".encode())
    return client


def test_the_program_serves_what_is_too_large(shop: Shop) -> None:
    path = shop.put("/huge.bin", noise(2 << 20))
    large, sent = shop.seen("large"), shop.box.sent_to_program()
    assert shop.get(path).get("age") is not None
    assert (shop.seen("large") - large, shop.box.sent_to_program() - sent) == (1, 1)


def test_a_url_whose_responses_are_private_goes_past_the_program(shop: Shop) -> None:
    path = shop.shelf.put("/own", b"own", {"Cache-Control": "private"})
    first, sent, past = shop.get(path), shop.box.sent_to_program(), shop.seen("past")
    others = [shop.get(path) for _ in range(3)]
    assert [one.body for one in (first, *others)] == [b"own"] * 4
    assert (shop.seen("past") - past, shop.box.sent_to_program() - sent) == (3, 0)
    assert len(shop.shelf.requests(path)) == 4
    told = [name for one in (first, *others) for name, _ in one.fields if name.startswith(b"x-longhaul")]
    heard = [name for one in shop.shelf.requests(path) for name, _ in one.fields if name.startswith(b"x-longhaul")]
    assert not told
    assert not heard


def test_a_cookie_sends_its_own_requests_past_alone(shop: Shop) -> None:
    path = shop.shelf.put("/cookie.bin", b"for all", KEPT)
    for _ in range(3):
        assert shop.get(path, Cookie="id=1").get("age") is None
    sent = shop.box.sent_to_program()
    assert shop.get(path, Cookie="id=1").body == b"for all"
    assert shop.box.sent_to_program() == sent
    shop.get(path)
    wait_for("a hit", lambda: shop.get(path).get("age") is not None)
    assert shop.get(path, Cookie="id=1").get("age") is None, "a stored response is not for a client with a cookie"


def test_no_field_of_one_client_chooses_the_response_of_another(shop: Shop) -> None:
    path = shop.shelf.make("/host", lambda request: (200, KEPT, (request.get("x-forwarded-host") or "none").encode()))
    for _ in range(3):
        assert shop.get(path, X_Forwarded_Host="evil.example").body == b"evil.example"
        assert shop.get(path).body == b"none"


def test_a_change_removes_a_hit_at_once(shop: Shop) -> None:
    path = shop.put("/changed.bin", b"old")
    shop.shelf.put(path, b"new", KEPT)
    assert shop.get(path).body == b"old"
    command("cache", "purge", "--state", shop.box.pep.state, "--url", f"http://{WWW}{path}")
    assert shop.get(path).body == b"new"
    wait_for("a hit", lambda: shop.get(path).get("age") is not None)
    shop.shelf.put(path, b"newer", KEPT)
    shop.box.get(path, method="POST", body=b"x")
    wait_for("the removal", lambda: shop.get(path).body == b"newer")


def test_every_counter_of_the_reader_is_documented(shop: Shop) -> None:
    document = (REPOSITORY / "envoy-config" / "METRICS.md").read_text()
    documented = set(re.findall(r"^\| `(longhaul_object_reader_(?!panics)\w+)`", document, re.MULTILINE))
    page = shop.box.pep.page(f"http://{shop.box.config['listen']['metrics']}/metrics")
    there = set(re.findall(r"^(longhaul_object_reader_(?!panics)\w+)", page, re.MULTILINE))
    assert documented == there
    reasons = set(re.findall(r'^longhaul_object_reader_requests_total\{reason="(\w+)"\}', page, re.MULTILINE))
    readme = (REPOSITORY / "filters" / "objects" / "README.md").read_text()
    table = readme.partition("## The reader in Envoy")[2].partition("\n## ")[0]
    assert reasons == set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


def test_the_memory_of_the_reader_is_in_the_files_of_envoy(shop: Shop) -> None:
    rendered = Path(shop.box.pep.state) / "rendered" / "ecds" / "object-reader.yaml"
    assert '"hot_bytes"' in rendered.read_text().replace("\\", "")
