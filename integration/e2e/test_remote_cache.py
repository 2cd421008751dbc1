"""The cache of a remote: what programs download crosses the link once."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import random
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import brotli
import pytest

from harness.boxes.objects_box import KEPT, WWW, ObjectsPair, Shelf, ask, objects_pair, update
from harness.boxes.pep import Pep
from harness.host.artifacts import need_commands
from harness.host.waiting import wait_for
from harness.origins.http1 import Message

BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"
IMAGE = {**KEPT, "Content-Type": "image/png", "ETag": '"1"'}
PAGE = {**KEPT, "Content-Type": "text/html"}
MIB = 1 << 20
CLIENTS = 6

_fresh = itertools.count(1)


@dataclass
class Ship:
    """A pair whose remote has a cache, and an origin."""

    pair: ObjectsPair
    shelf: Shelf

    def get(self, path: str, **fields: str) -> Message:
        """Requests an object as a program does, unless the fields say otherwise."""
        return ask(self.pair.http, path, {name.replace("_", "-"): value for name, value in fields.items()})

    def is_local(self, path: str, **fields: str) -> bool:
        """Returns true if the cache of the remote responds without the ground."""
        remote = self.pair.remote
        sent, fetched = remote.sent_to_program(), self.pair.fetched()
        assert self.get(path, **fields).status in (200, 206)
        return (remote.sent_to_program() - sent, self.pair.fetched() - fetched) == (1, 0)


@pytest.fixture(scope="module")
def ship(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ship]:
    shelf = Shelf()
    with objects_pair(tmp_path_factory.mktemp("ship"), {WWW: shelf.address}, cached=True) as pair:
        yield Ship(pair, shelf)
    shelf.origin.close()


def decoded(got: Message) -> bytes:
    """Returns the body without its content encoding."""
    decoders = {"gzip": gzip.decompress, "br": brotli.decompress}
    encoding = got.get("content-encoding")
    return decoders[encoding](got.body) if encoding else got.body


def fresh(ending: str = "bin") -> str:
    """Returns a path that was never requested."""
    return f"/fresh-{next(_fresh)}.{ending}"


def test_an_object_of_programs_crosses_the_link_once(ship: Ship) -> None:
    body = bytes(range(256)) * 20
    path = ship.shelf.put(fresh(), body)
    assert ship.get(path).body == body
    assert ship.is_local(path)
    got = ship.get(path, User_Agent="Debian APT-HTTP/1.3")
    assert (got.body, got.get("age") is not None) == (body, True)
    assert not [name for name, _ in got.fields if name.startswith(b"x-longhaul")]
    assert ship.shelf.asked(path) == 1
    assert "objects " in ship.pair.remote.status()


def test_browsers_and_programs_share_objects(ship: Ship) -> None:
    path = ship.shelf.put(fresh(), b"for all")
    assert ship.get(path, User_Agent=BROWSER).body == b"for all"
    assert ship.is_local(path)
    assert ship.is_local(path, User_Agent=BROWSER)


def test_a_page_does_not_bring_what_the_remote_has(ship: Ship) -> None:
    objects = {ship.shelf.put(fresh("png"), b"image %d" % number, IMAGE): b"image %d" % number for number in range(2)}
    first, second = objects
    page = ship.shelf.put(fresh("html"), f"<img src={first}><img src={second}>".encode(), PAGE)
    assert ship.get(first, User_Agent=BROWSER).body == objects[first]
    cached, sent = (f"longhaul_bundling_{name}_total{{}}" for name in ("cached", "objects"))
    before = ship.pair.ground.pep.metrics()
    assert ship.get(page, User_Agent=BROWSER, Accept="text/html,*/*;q=0.8").status == 200

    def brought() -> dict[str, float]:
        now = ship.pair.ground.pep.metrics()
        return {name: now[name] - before[name] for name in (cached, sent)}

    wait_for("the ground has read the page", lambda: brought() == {cached: 1, sent: 1})
    for path, body in objects.items():
        assert ship.get(path, User_Agent=BROWSER, Referer=f"http://{WWW}{page}").body == body
    assert ship.is_local(first, User_Agent=BROWSER)


def test_the_ground_remembers_the_cache_of_a_remote_that_starts_again(tmp_path: Path) -> None:
    shelf = Shelf()
    image = shelf.put("/a.png", b"an image", IMAGE)
    page = shelf.put("/a.html", f"<img src={image}>".encode(), PAGE)
    with objects_pair(tmp_path, {WWW: shelf.address}, cached=True) as pair:
        ship = Ship(pair, shelf)
        assert ship.get(image, User_Agent=BROWSER).body == b"an image"
        wait_for("it is stored", lambda: ship.is_local(image))
        before = pair.remote.pep
        before.child.stop()
        with Pep(before.config, pair.remote.etc):
            wait_for("the pipe", lambda: ship.get(image).status == 200)
            assert ship.get(page, User_Agent=BROWSER, Accept="text/html,*/*;q=0.8").status == 200
            cached = "longhaul_bundling_cached_total{}"
            wait_for("the ground names it", lambda: pair.ground.pep.metrics()[cached] == 1)
            assert ship.get(image, User_Agent=BROWSER, Referer=f"http://{WWW}{page}").body == b"an image"
    shelf.origin.close()


def test_a_page_validates_a_stale_object_without_a_round_trip(ship: Ship) -> None:
    path = ship.shelf.put(fresh("png"), b"an image", {**IMAGE, "Cache-Control": "max-age=1"})
    page = ship.shelf.put(fresh("html"), f"<img src={path}>".encode(), {**PAGE, "Cache-Control": "no-cache"})
    assert ship.get(path, User_Agent=BROWSER).body == b"an image"
    wait_for("it is stale", lambda: int(ship.get(path, Cache_Control="max-stale").get("age") or 0) > 1)

    def is_validated() -> bool:
        """Visits the page, and requests the object in the moment after."""
        assert ship.get(page, User_Agent=BROWSER, Accept="text/html,*/*;q=0.8").status == 200
        time.sleep(0.2)
        return ship.is_local(path, User_Agent=BROWSER, Referer=f"http://{WWW}{page}")

    wait_for("a validation before the request", is_validated, interval_s=2)
    assert ship.shelf.asked(path) > 1, "the ground has asked the origin"


def test_a_url_whose_responses_are_private_goes_past_the_program(ship: Ship) -> None:
    path = ship.shelf.put(fresh(), b"own", {"Cache-Control": "private"})
    bypassed = "longhaul_bundling_bypassed_total{}"

    def goes_past() -> bool:
        """Requests the object. Each worker of Envoy learns for itself."""
        sent, before = ship.pair.remote.sent_to_program(), ship.pair.remote.pep.metrics()[bypassed]
        got = ship.get(path)
        assert (got.body, [name for name, _ in got.fields if name.startswith(b"x-longhaul")]) == (b"own", [])
        past = ship.pair.remote.pep.metrics()[bypassed] - before
        assert past + ship.pair.remote.sent_to_program() - sent == 1
        return past == 1

    assert not goes_past()
    wait_for("every worker knows it", lambda: all(goes_past() for _ in range(10)))
    heard = [name for one in ship.shelf.requests(path) for name, _ in one.fields if name.startswith(b"x-longhaul")]
    assert heard == []
    assert not ship.is_local(ship.shelf.put(fresh(), b"other"))


def test_nobody_names_a_remote_to_the_ground_or_to_the_origin(ship: Ship) -> None:
    seen: list[Message] = []
    path = ship.shelf.make(fresh(), lambda request: (seen.append(request), (200, KEPT, b"x"))[1])
    assert ship.get(path, User_Agent=BROWSER, X_Longhaul_Caches="0000000000000000").body == b"x"
    assert [name for name, _ in seen[0].fields if name.startswith(b"x-longhaul")] == []


def test_text_reaches_each_client_in_an_encoding_that_it_accepts(ship: Ship) -> None:
    text = b"function f() { return 'The quick brown fox'; }\n" * 400
    for accepted in (("br", "gzip", None), (None, "gzip", "br")):
        path = ship.shelf.put(fresh("js"), text, {**KEPT, "Content-Type": "text/javascript"})
        for coding in accepted:
            fields = {"Accept_Encoding": coding} if coding else {}
            for _ in range(3):
                got = ship.get(path, **fields)
                encoding = got.get("content-encoding")
                assert encoding in (coding, None)
                assert decoded(got) == text
            assert ship.is_local(path, **fields)


def test_a_page_that_may_be_a_difference_from_another_one_is_the_grounds(ship: Ship) -> None:
    bodies = [b"<!doctype html><p>one of many</p>" * 200 + b"%d" % number for number in range(2)]
    pages = {ship.shelf.put(fresh("html"), body, {**KEPT, "Content-Type": "text/html"}): body for body in bodies}
    for _ in range(2):
        for path, body in pages.items():
            assert decoded(ship.get(path, Accept="text/html,*/*;q=0.8")) == body
    assert not any(ship.is_local(path, Accept="text/html,*/*;q=0.8") for path in pages)


@pytest.mark.parametrize(
    "fields", [{"Cache-Control": "private"}, {"Cache-Control": "no-store"}, {**KEPT, "Set-Cookie": "a=b"}]
)
def test_what_belongs_to_one_client_is_not_stored(ship: Ship, fields: dict[str, str]) -> None:
    count = itertools.count(1)
    path = ship.shelf.make(fresh(), lambda _: (200, fields, b"%d" % next(count)))
    assert [ship.get(path).body for _ in range(3)] == [b"1", b"2", b"3"]


def test_an_unsafe_request_removes_the_object_at_both_ends(ship: Ship) -> None:
    count = itertools.count(1)
    path = ship.shelf.make(
        fresh(), lambda request: (200, KEPT, b"%d" % next(count) if request.method == "GET" else b"")
    )
    assert [ship.get(path).body for _ in range(3)] == [b"1", b"1", b"1"]
    assert ask(ship.pair.http, path, method="POST", body=b"new").status == 200
    assert ship.get(path).body == b"2"


def test_clients_that_update_by_ranges_cost_the_link_one_copy(ship: Ship) -> None:
    body = b"".join(number.to_bytes(4, "big") for number in range(3 * MIB))
    path = ship.shelf.put_in_parts(fresh(), body)
    received = 'envoy_cluster_upstream_cx_rx_bytes_total{envoy_cluster_name="pipe"}'
    before = ship.pair.remote.pep.metrics()[received]

    update(ship.pair.http, path, body, CLIENTS, User_Agent="Microsoft-Delivery-Optimization/10.1")
    crossed = ship.pair.remote.pep.metrics()[received] - before
    assert crossed <= len(body) * 1.1
    assert ship.is_local(path, Range=f"bytes=0-{MIB - 1}")


def test_machines_that_update_with_apt_cost_the_link_one_package(ship: Ship, tmp_path: Path) -> None:
    need_commands("apt-get", "dpkg-deb")
    package = a_package(tmp_path / "tree", 6 * MIB)
    ship.shelf.put("/./Packages", index_of(package), {"ETag": '"i"'})
    ship.shelf.put_in_parts("/./large.deb", package, {"Last-Modified": "Fri, 27 Nov 2026 10:00:00 GMT"})
    before = ship.shelf.sent_in_parts
    for number in range(3):
        machine = tmp_path / f"machine-{number}"
        for words in (["update"], ["download", "large"]):
            done = subprocess.run(
                [*apt_get(machine, ship.pair.http), *words], capture_output=True, text=True, cwd=machine
            )
            assert done.returncode == 0, done.stderr
        assert (machine / "large_1_all.deb").read_bytes() == package
    assert ship.shelf.sent_in_parts - before == len(package)


def a_package(tree: Path, size: int) -> bytes:
    """Makes a Debian package with so many bytes."""
    (tree / "DEBIAN").mkdir(parents=True)
    fields = ["Package: large", "Version: 1", "Architecture: all", "Maintainer: n <n@example.org>", "Description: n"]
    (tree / "DEBIAN" / "control").write_text("\n".join(fields) + "\n")
    (tree / "payload").write_bytes(random.Random(1).randbytes(size))
    subprocess.run(["dpkg-deb", "-Znone", "--build", tree, tree.with_suffix(".deb")], check=True, capture_output=True)
    return tree.with_suffix(".deb").read_bytes()


def index_of(package: bytes) -> bytes:
    """Returns the index of an archive that has one package."""
    digest = hashlib.sha256(package).hexdigest()
    fields = ["Package: large", "Version: 1", "Architecture: all", "Maintainer: n <n@example.org>", "Description: n"]
    fields += ["Filename: ./large.deb", f"Size: {len(package)}", f"SHA256: {digest}"]
    return ("\n".join(fields) + "\n\n").encode()


def apt_get(machine: Path, port: int) -> list[str]:
    """Returns the command of a machine of its own, whose archive is behind the pair."""
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (machine / folder).mkdir(parents=True, exist_ok=True)
    (machine / "sources.list").write_text(f"deb [trusted=yes] http://{WWW} ./\n")
    (machine / "status").write_text("")
    options = {
        "Dir::State": machine / "state", "Dir::State::status": machine / "status", "Dir::Cache": machine / "cache",
        "Dir::Etc::SourceList": machine / "sources.list", "Dir::Etc::SourceParts": "-", "Dir::Etc::Parts": "-",
        "Acquire::http::Proxy": f"http://127.0.0.1:{port}", "APT::Sandbox::User": "root", "Acquire::Languages": "none",
    }  # fmt: skip
    return ["apt-get", *(f"-o{name}={value}" for name, value in options.items())]


def test_a_dead_program_costs_no_request(ship: Ship) -> None:
    path = ship.shelf.put(fresh(), b"for all")
    assert ship.get(path).body == b"for all"
    ship.pair.remote.kill_program()
    assert ship.get(path).body == b"for all"
    wait_for("a hit", lambda: ship.is_local(path))


def test_objects_are_there_while_the_link_is_down(tmp_path: Path) -> None:
    shelf = Shelf()
    with objects_pair(tmp_path, {WWW: shelf.address}, cached=True) as pair:
        ship = Ship(pair, shelf)
        path = shelf.put("/kept.bin", b"for all", {"Cache-Control": "max-age=1", "ETag": '"1"'})
        lasting = shelf.put("/lasting.bin", b"for long")
        for one in (path, lasting):
            assert ship.get(one).status == 200
        pair.ground.pep.child.stop()
        assert ship.get(lasting).body == b"for long"
        wait_for("the other one is stale", lambda: ship.get(path).get("age") not in (None, "0", "1"), timeout_s=60)
        assert ship.get(path).body == b"for all"
        lacking = ship.get(shelf.put("/lacking.bin", b"never asked"))
        assert (lacking.status, lacking.get("retry-after"), b"the link is down" in lacking.body) == (503, "5", True)
    shelf.origin.close()
