"""The cache: a program beside Envoy keeps objects. Its death costs no request, and no client gets
what belongs to another one."""

from __future__ import annotations

import gzip
import http.client
import itertools
import json
import random
import re
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.boxes.objects_box import (
    KEPT,
    WWW,
    Load,
    Made,
    ObjectsBox,
    Shelf,
    ask,
    configuration,
    objects_box,
    objects_pair,
    update,
)
from harness.boxes.pep import command, parse_metrics
from harness.clients.commands import Curl
from harness.host.artifacts import REPOSITORY, need_commands
from harness.host.ports import free_ports
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.origins.http1 import Message, message, read_response
from harness.origins.name_server import NameServer

IMG, FADING, PRIVATE, OWN = "img.example.org", "fading.example.org", "private.example.org", "pep.example.org"
CANARY = "127.78.9.9"
"""A private address where a listener stands. The resolver gives it for the name `PRIVATE`."""
KILLS, CLIENTS = 5, 8
IDLE_S = 3
LARGE_BYTES = 5 << 20
STALE = {"Cache-Control": "max-age=60", "Age": "100", "ETag": '"old"'}
"""The fields of a response that was stale when it came."""

_fresh = itertools.count(1)


def fresh(ending: str = "bin") -> str:
    """Returns a path that was never requested."""
    return f"/fresh-{next(_fresh)}.{ending}"


def noise(size: int, seed: int = 1) -> bytes:
    """Returns bytes that no compression makes smaller."""
    return random.Random(seed).randbytes(size)


@dataclass
class Shop:
    """A box and its origins."""

    folder: Path
    box: ObjectsBox
    shelf: Shelf
    fading: Shelf
    canary: socket.socket
    tls: int
    trusted: Path

    def get(self, path: str, **fields: str) -> Message:
        """Requests an object. The fields have their names with underscores."""
        return self.box.get(path, {name.replace("_", "-"): value for name, value in fields.items()})

    def at_once(self, wanted: list[Callable[[], Message]]) -> list[Message]:
        """Sends requests side by side."""
        with ThreadPoolExecutor(len(wanted)) as pool:
            return list(pool.map(lambda one: one(), wanted))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("objects")
    shelf, fading = Shelf(), Shelf(closes=True)
    (tls,) = free_ports(1)
    authority = Authority(folder)
    names = {PRIVATE: [CANARY], "public.example.org": ["198.51.100.7"]}
    with (
        socket.create_server((CANARY, 0)) as canary,
        NameServer(lambda name, _: names.get(name, "NXDOMAIN")) as resolver,
    ):
        canary.setblocking(False)
        hosts = {WWW: shelf.address, IMG: shelf.address, FADING: fading.address}
        config = configuration(
            folder,
            proxy={"addresses": ["127.0.0.1"], "secure_names": [OWN]},
            tls={"terminate": [{"names": [OWN], **authority.issue(OWN).as_dict()}]},
            upstream={"resolvers": [resolver.at], "ports": [80, 443, canary.getsockname()[1]], "map": hosts},
            transport={"stream_idle_timeout": f"{IDLE_S}s"},
            rewrite={"level": "safe", "target": "http"},
            dns={"domains": ["steered.txt"]},
        )
        config["listen"]["tls"] = f"127.0.0.1:{tls}"
        with objects_box(folder, config) as box:
            yield Shop(folder, box, shelf, fading, canary, tls, authority.files.cert)
    shelf.origin.close()
    fading.origin.close()


# ------------------------------------------------------------------------------------------------------ hits


def test_an_object_is_served_from_the_cache_at_its_second_request(shop: Shop) -> None:
    body = noise(5000)
    path = shop.shelf.put(fresh(), body)
    first, second = shop.get(path), shop.get(path)
    assert [(one.status, one.body, one.complete) for one in (first, second)] == [(200, body, True)] * 2
    assert shop.shelf.asked(path) == 1
    assert (first.get("age"), second.get("age") is None) == (None, False)
    assert not [name for name, _ in second.fields if name.startswith(b"x-longhaul")]


def test_the_access_log_says_how_the_cache_served_each_request(shop: Shop) -> None:
    for fields, outcomes in ((KEPT, ["stored", "hit"]), ({"Cache-Control": "private"}, ["past", "past"])):
        path = shop.shelf.put(fresh(), noise(900), fields)
        for _ in outcomes:
            assert shop.get(path).get("x-longhaul-outcome") is None
        lines = wait_for(
            "both lines",
            lambda path=path: found if len(found := of_path(shop, path)) == 2 else None,
        )
        assert [one.get("cache") for one in lines] == outcomes


def of_path(shop: Shop, path: str) -> list[dict[str, str]]:
    """Returns the lines of the access log for a path."""
    return [one for one in shop.box.pep.requests() if one.get("path") == path and one["hop"] == "edge_http"]


def test_head_and_conditional_requests_are_hits_too(shop: Shop) -> None:
    path = shop.shelf.put(fresh(), noise(900), {**KEPT, "ETag": '"nine"'})
    shop.get(path)
    head = shop.box.get(path, method="HEAD")
    assert (head.status, head.get("content-length"), head.body) == (200, "900", b"")
    unchanged = shop.get(path, If_None_Match='"nine"')
    assert (unchanged.status, unchanged.get("etag"), unchanged.body) == (304, '"nine"', b"")
    assert shop.shelf.asked(path) == 1


def test_parts_of_a_stored_object_come_from_the_cache(shop: Shop) -> None:
    body = noise(5000)
    path = shop.shelf.put(fresh(), body)
    shop.get(path)
    for asked, wanted, said in (
        ("bytes=100-199", body[100:200], "bytes 100-199/5000"),
        ("bytes=-10", body[-10:], "bytes 4990-4999/5000"),
        ("bytes=4000-", body[4000:], "bytes 4000-4999/5000"),
    ):
        part = shop.get(path, Range=asked)
        assert (part.status, part.body, part.get("content-range")) == (206, wanted, said)
    assert shop.shelf.asked(path) == 1
    # The origin gives the error, or as this one the whole body.
    assert shop.get(path, Range="bytes=5000-").body == body
    assert shop.shelf.asked(path) == 2


def test_an_object_outlives_the_end_of_longhaul_run(shop: Shop) -> None:
    body = noise(70_000)
    path = shop.shelf.put(fresh(), body, {**KEPT, "Age": "7"})
    assert shop.get(path).body == body
    shop.box.pep.child.stop()
    shop.box.pep.__enter__()
    kept = shop.get(path)
    assert (kept.status, kept.body, shop.shelf.asked(path)) == (200, body, 1)
    assert int(kept.get("age") or 0) >= 7


def test_clients_that_ask_for_one_large_object_at_once_cost_one_request(shop: Shop) -> None:
    body, began = noise(LARGE_BYTES), threading.Barrier(CLIENTS + 1)
    path = fresh()

    def answer(_: Message) -> Iterator[bytes]:
        yield f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nCache-Control: max-age=600\r\n\r\n".encode()
        yield body[:100_000]
        # Each client has the head before the origin sends the rest.
        began.wait(20)
        yield body[100_000:]

    def client(_: int) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", shop.box.http, timeout=30)
        connection.request("GET", path, headers={"Host": WWW})
        got = connection.getresponse()
        began.wait(20)
        whole = got.read() == body
        connection.close()
        return whole

    shop.shelf.stream(path, answer)
    with ThreadPoolExecutor(CLIENTS) as pool:
        assert list(pool.map(client, range(CLIENTS))) == [True] * CLIENTS
    assert shop.shelf.asked(path) == 1
    wait_for("the whole object in the cache", lambda: shop.get(path).get("age") is not None)
    assert (shop.get(path).body == body, shop.shelf.asked(path)) == (True, 1)


def test_clients_that_download_by_ranges_cost_one_copy(shop: Shop) -> None:
    body = noise(12 << 20)
    path, before = shop.shelf.put_in_parts(fresh(), body), shop.shelf.sent_in_parts
    assert len(update(shop.box.http, path, body, CLIENTS)) == CLIENTS * 12
    sent = shop.shelf.sent_in_parts - before
    assert len(body) <= sent <= len(body) * 1.05
    assert shop.get(path).body == body
    assert shop.shelf.sent_in_parts - before == sent


def test_a_download_continues_after_the_death_of_the_program(shop: Shop) -> None:
    body = noise(24 << 20)
    path, before = shop.shelf.put_in_parts(fresh(), body), shop.shelf.sent_in_parts
    connection = http.client.HTTPConnection("127.0.0.1", shop.box.http, timeout=30)
    connection.request("GET", path, headers={"Host": WWW})
    response = connection.getresponse()
    got = response.read(6 << 20)
    # The client reads no more. So the program is at most 16 MiB ahead of it.
    shop.box.kill_program()
    with suppress(http.client.HTTPException, ConnectionError):
        got += response.read()
    connection.close()
    assert len(got) < len(body)
    wait_for("the program listens", lambda: shop.get(path, Range="bytes=0-1048575").get("age") is not None)
    rest = shop.get(path, Range=f"bytes={len(got)}-")
    assert (rest.status, got + rest.body == body) == (206, True)
    # Bytes that were under way are lost: blocks that were not complete, and all buffers on loopback.
    assert shop.shelf.sent_in_parts - before <= len(body) + (8 << 20)


def test_http2_clients_of_the_secure_name_get_hits(shop: Shop) -> None:
    need_commands("curl")
    body = noise(5000)
    path = shop.shelf.put(fresh(), body)
    names = ("--resolve", f"{OWN}:{shop.tls}:127.0.0.1", "--cacert", str(shop.trusted), "--http2")
    for _ in range(2):
        got = Curl(shop.folder).get(f"https://{OWN}:{shop.tls}/{WWW}{path}", *names)
        assert (got.status, got.version, got.body) == (200, "2", body), got
    assert got.header("age") is not None
    assert shop.shelf.asked(path) == 1


def sheet(shop: Shop) -> tuple[str, bytes]:
    """Puts a style sheet on the shelf. Returns its path and its text."""
    text = b"".join(b".rule-%d { color: teal }\n" % number for number in range(8000))
    return shop.shelf.put(fresh("css"), text, {**KEPT, "Content-Type": "text/css", "ETag": '"sheet"'}), text


def test_text_is_compressed_for_clients_with_gzip_alone(shop: Shop) -> None:
    path, text = sheet(shop)
    for _ in range(2):
        packed, plain = shop.get(path, Accept_Encoding="gzip"), shop.get(path)
        assert packed.get("content-encoding") == "gzip"
        assert (plain.get("content-encoding"), plain.body) == (None, text)
        assert gzip.decompress(packed.body) == text
        assert packed.get("etag") != plain.get("etag"), "the bytes differ"
    assert packed.get("age") is not None
    assert plain.get("age") is not None


def test_text_is_stored_compressed(shop: Shop) -> None:
    path, text = sheet(shop)
    shop.get(path, Accept_Encoding="gzip")
    wait_for("a hit", lambda: shop.get(path, Accept_Encoding="gzip").get("age") is not None)
    assert min(one.stat().st_size for one in shop.box.files_of(path)) < len(text) / 4


# ------------------------------------------------------------------------------------------------ whose bytes


@pytest.mark.parametrize("name", ["Cookie", "Authorization"])
def test_what_a_site_makes_for_one_client_reaches_no_other_one(shop: Shop, name: str) -> None:
    path = shop.shelf.make(fresh(), lambda request: (200, KEPT, f"for {request.get(name.lower())}".encode()))
    for client in ("a=1", None, "b=2", "a=1", None, "c=3"):
        got = shop.get(path, **({name: client} if client else {}))
        assert got.body == f"for {client}".encode()


@pytest.mark.parametrize("name", ["Cookie", "Authorization"])
def test_clients_of_one_url_at_the_same_time_get_their_own_bytes(shop: Shop, name: str) -> None:
    path, all_came = fresh(), threading.Barrier(CLIENTS)

    def own(request: Message) -> Made:
        all_came.wait(20)
        return 200, KEPT, f"for {request.get(name.lower())}".encode()

    shop.shelf.make(path, own)
    got = shop.at_once([lambda n=n: shop.get(path, **{name: f"k={n}"}) for n in range(CLIENTS)])
    assert [one.body.decode() for one in got] == [f"for k={n}" for n in range(CLIENTS)]


def test_what_a_site_calls_public_is_shared_by_clients_with_cookies(shop: Shop) -> None:
    path = shop.shelf.put(fresh(), b"for all", {"Cache-Control": "public, max-age=600"})
    for cookie in ("a=1", "b=2", "c=3"):
        assert shop.get(path, Cookie=cookie).body == b"for all"
    assert shop.get(path).body == b"for all"
    assert shop.shelf.asked(path) == 1


@pytest.mark.parametrize(
    "fields",
    [{"Cache-Control": "private, max-age=600"}, {"Cache-Control": "no-store"}, {**KEPT, "Set-Cookie": "id=1"},
     {**KEPT, "Vary": "*"}],
    ids=["private", "no-store", "set-cookie", "vary-all"],
)  # fmt: skip
def test_what_a_site_keeps_from_caches_is_never_stored(shop: Shop, fields: dict[str, str]) -> None:
    count = itertools.count(1)
    path = shop.shelf.make(fresh(), lambda _: (200, fields, b"%d" % next(count)))
    assert [shop.get(path).body for _ in range(3)] == [b"1", b"2", b"3"]


def bypasses(shop: Shop, path: str, **fields: str) -> bool:
    """Returns true if a request bypasses the program. Each worker of Envoy learns for itself."""
    sent = shop.box.sent_to_program()
    assert shop.get(path, **fields).status == 200
    return shop.box.sent_to_program() == sent


def test_a_url_whose_responses_are_private_goes_past_the_program(shop: Shop) -> None:
    path = shop.shelf.put(fresh(), b"own", {"Cache-Control": "private"})
    first = shop.get(path)
    wait_for("every worker knows it", lambda: all(bypasses(shop, path) for _ in range(10)))
    others = [shop.get(path) for _ in range(3)]
    assert [one.body for one in (first, *others)] == [b"own"] * 4
    told = [name for one in (first, *others) for name, _ in one.fields if name.startswith(b"x-longhaul")]
    heard = [name for one in shop.shelf.requests(path) for name, _ in one.fields if name.startswith(b"x-longhaul")]
    assert (told, heard) == ([], [])


def test_a_cookie_sends_its_own_requests_past_the_program_alone(shop: Shop) -> None:
    path = shop.shelf.put(fresh(), b"for all", KEPT)
    wait_for("every worker knows it", lambda: all(bypasses(shop, path, Cookie="id=1") for _ in range(10)))
    assert not bypasses(shop, path)
    wait_for("a hit", lambda: shop.get(path).get("age") is not None)


def test_languages_are_kept_apart_where_the_site_says_so(shop: Shop) -> None:
    spoken = {**KEPT, "Vary": "Accept-Language"}
    path = shop.shelf.make(fresh(), lambda request: (200, spoken, (request.get("accept-language") or "-").encode()))
    for _ in range(2):
        for language in ("en", "de", "fr"):
            assert shop.get(path, Accept_Language=language).body == language.encode()
        assert shop.get(path).body == b"-"
    assert shop.shelf.asked(path) == 4
    same = shop.shelf.put(fresh(), b"any language")
    assert [shop.get(same, Accept_Language=one).body for one in ("en", "de")] == [b"any language"] * 2
    assert shop.shelf.asked(same) == 1


def test_languages_are_kept_apart_when_clients_wait_for_one_response(shop: Shop) -> None:
    path, opened = fresh(), threading.Event()

    def spoken(request: Message) -> Made:
        opened.wait(20)
        return 200, {**KEPT, "Vary": "Accept-Language"}, (request.get("accept-language") or "-").encode()

    shop.shelf.make(path, spoken)
    languages = [("en", "de")[number % 2] for number in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        got = [pool.submit(shop.get, path, Accept_Language=one) for one in languages]
        wait_for("all requests at the program", lambda: shop.box.under_way() >= CLIENTS)
        opened.set()
        assert [one.result().body.decode() for one in got] == languages


def test_a_client_gets_no_encoding_that_it_does_not_accept(shop: Shop) -> None:
    body = noise(5000)

    def made(request: Message) -> Made:
        packs = "gzip" in (request.get("accept-encoding") or "")
        coding = {"Content-Encoding": "gzip"} if packs else {}
        return 200, {**KEPT, "Vary": "Accept-Encoding", **coding}, gzip.compress(body) if packs else body

    for order in (("gzip", "identity"), ("identity", "gzip")):
        path = shop.shelf.make(fresh(), made)
        for accepted in (*order, *order):
            got = shop.get(path, Accept_Encoding=accepted)
            coding = got.get("content-encoding") or "identity"
            assert coding in ("identity", accepted)
            assert (gzip.decompress(got.body) if coding == "gzip" else got.body) == body
        assert shop.get(path, Accept_Encoding=order[0]).get("age") is not None
        assert shop.shelf.asked(path) <= 2


# ------------------------------------------------------------------------------------------ origins that fail


def test_a_stale_object_is_served_while_its_origin_is_down(shop: Shop) -> None:
    stale, strict, unseen = fresh(), fresh(), fresh()
    shop.fading.put(stale, b"stale", STALE)
    shop.fading.put(strict, b"strict", {**STALE, "Cache-Control": "max-age=60, must-revalidate"})
    assert [shop.box.get(path, host=FADING).body for path in (stale, strict)] == [b"stale", b"strict"]
    shop.fading.origin.close()
    got = shop.box.get(stale, host=FADING)
    assert (got.status, got.body) == (200, b"stale")
    assert int(got.get("age") or 0) >= 100
    assert shop.box.get(strict, host=FADING).status in (502, 504), "the site forbids it"
    never = shop.box.get(unseen, host=FADING)
    assert (never.status, f"no connection to {FADING}" in never.body.decode()) == (502, True), never


def test_a_stale_object_is_validated_while_its_origin_responds(shop: Shop) -> None:
    def made(request: Message) -> Made:
        return (304, {**KEPT, "ETag": '"old"'}, b"") if request.get("if-none-match") else (200, STALE, b"stale")

    path = shop.shelf.make(fresh(), made)
    assert [shop.get(path).body for _ in range(3)] == [b"stale"] * 3
    assert [one.get("if-none-match") for one in shop.shelf.requests(path)] == [None, '"old"']


def test_an_origin_that_says_nothing_is_given_up_with_the_usual_words(shop: Shop) -> None:
    over, path = threading.Event(), fresh()

    def silent(_: Message) -> Made:
        over.wait(30)
        return 200, {}, b""

    shop.shelf.make(path, silent)
    got = shop.get(path)
    over.set()
    assert (got.status, b"stream_idle_timeout" in got.body) == (504, True), got


# ---------------------------------------------------------------------------------------------------- refusals


def test_a_name_with_a_private_address_is_refused_behind_the_program_too(shop: Shop) -> None:
    name = f"{PRIVATE}:{shop.canary.getsockname()[1]}"
    before = shop.box.sent_to_program()
    refused = shop.box.get(fresh(), host=name)
    assert refused.status == 403, refused
    assert shop.box.sent_to_program() > before, "the program requested it"
    # The same request once more, as a program that has gone wrong would send it.
    for host in (name, "169.254.169.254", "127.0.0.1:9901", "10.66.0.1", "public.example.org:22"):
        with socket.socket(socket.AF_UNIX) as direct:
            direct.connect(shop.box.origins_socket())
            direct.sendall(message(b"GET /x HTTP/1.1", [(b"host", host.encode())]))
            assert read_response(direct).status == 403, host
    assert shop.box.get(fresh(), host=f"{WWW}:22").status == 403
    with pytest.raises(BlockingIOError):
        shop.canary.accept()


def test_posts_and_requests_with_bodies_pass_by_the_program(shop: Shop) -> None:
    path = shop.shelf.make(fresh(), lambda request: (200, KEPT, request.method.encode() + b" " + request.body))
    before = shop.box.sent_to_program()
    sent = [("POST", b"one"), ("POST", b"two"), ("PUT", b"three"), ("DELETE", b""), ("GET", b"four"), ("GET", b"five")]
    for method, body in sent:
        got = shop.box.get(path, method=method, body=body)
        assert (got.status, got.body) == (200, method.encode() + b" " + body)
    assert shop.shelf.asked(path) == len(sent)
    assert shop.box.sent_to_program() == before


def test_an_unsafe_request_removes_the_object_of_its_url(shop: Shop) -> None:
    count = itertools.count(1)
    path = shop.shelf.make(fresh(), lambda _: (200, KEPT, b"%d" % next(count)))
    assert [shop.get(path).body for _ in range(2)] == [b"1", b"1"]
    assert shop.box.get(path, method="POST", body=b"change").body == b"2"
    wait_for("the new object", lambda: shop.get(path).body == b"3")
    assert [one.line.split()[0] for one in shop.shelf.requests(path)] == [b"GET", b"POST", b"GET"]


# ----------------------------------------------------------------------------------------- a program that dies


def goods(shelf: Shelf) -> dict[str, bytes]:
    """Puts objects for a load there: kept ones of several sizes, and one that no cache may keep."""
    bodies = {fresh(): noise(size, size) for size in (10, 1000, 30_000, 300_000)}
    for path, body in bodies.items():
        shelf.put(path, body)
    never = fresh()
    bodies[shelf.put(never, b"never kept", {"Cache-Control": "no-store"})] = b"never kept"
    return bodies


def test_no_request_fails_while_the_program_is_killed(shop: Shop) -> None:
    bodies = goods(shop.shelf)
    restarts = shop.box.child()["restarts"]
    with Load(shop.box.http, bodies).running() as load:
        for _ in range(KILLS):
            load.go_on(60)
            shop.box.kill_program()
        load.go_on(60)
    assert load.failed == []
    assert shop.box.child()["restarts"] == restarts + KILLS
    for path in list(bodies)[:-1]:
        wait_for("a hit", lambda path=path: shop.get(path).get("age") is not None)
        asked = shop.shelf.asked(path)
        assert (shop.get(path).body, shop.shelf.asked(path)) == (bodies[path], asked)


def test_status_reports_the_death_of_the_program(shop: Shop) -> None:
    before = json.loads(shop.box.status("--json"))["objects"]["restarts"]
    shop.box.kill_program()
    report = json.loads(shop.box.status("--json"))["objects"]
    assert (report["up"], report["restarts"]) == (True, before + 1)
    (row,) = [one for one in shop.box.status().splitlines() if one.startswith("objects ")]
    assert re.search(rf"up .*restarts: {before + 1}, the last one because it .*(signal|kill)", row), row
    assert "longhaul-objects" in shop.box.pep.output()


# ------------------------------------------------------------------------------------------------------- pages


def test_the_objects_of_a_page_are_in_the_cache_before_the_browser_requests_them(shop: Shop) -> None:
    picture = shop.shelf.put(fresh("png"), b"a picture", {**KEPT, "Content-Type": "image/png"})
    page = f'<!doctype html><p>a page</p><img src="http://{IMG}{picture}">'
    path = shop.shelf.put(fresh("html"), page.encode(), {"Content-Type": "text/html; charset=utf-8"})
    got = shop.get(path, User_Agent="a browser", Accept="text/html,*/*;q=0.8", Accept_Language="de")
    moved = f"/{IMG}{picture}"
    assert f"http://127.0.0.1:{shop.box.http}{moved}".encode() in got.body
    wait_for("the prefetch", lambda: shop.shelf.asked(picture) == 1)
    own = f"127.0.0.1:{shop.box.http}"
    browsers = shop.box.get(moved, {"Accept": "image/avif,image/webp,*/*;q=0.8", "Accept-Language": "de"}, host=own)
    assert (browsers.status, browsers.body, shop.shelf.asked(picture)) == (200, b"a picture", 1)


# --------------------------------------------------------------------------------------------- other machines


def test_a_cache_that_goes_and_comes_back_loses_no_request(folder: Path) -> None:
    shelf = Shelf()
    bodies = goods(shelf)
    config = configuration(folder, upstream={"map": {WWW: shelf.address}, "resolvers": ["127.0.0.1:53"]})
    kept = config["cache"]
    with objects_box(folder, config | {"cache": "off"}) as box:
        with Load(box.http, bodies).running() as load:
            for cache in (kept, "off", kept):
                box.write(cache=cache)
                load.go_on(150)
        assert load.failed == []
        path = next(iter(bodies))
        assert box.get(path).get("age") is not None
    shelf.origin.close()


def test_hosts_of_a_group_share_objects_whose_validator_is_the_same(folder: Path) -> None:
    shelf, hosts = Shelf(), folder / "group.txt"
    hosts.write_text(f"# a service\n={WWW}\n={IMG}\n")
    names = {WWW: shelf.address, IMG: shelf.address, FADING: shelf.address}
    config = configuration(folder, upstream={"map": names, "resolvers": ["127.0.0.1:53"]})
    group = {"hosts": str(hosts), "ignore": ["key"], "fresh_by": "validator"}
    config["cache"] = {**config["cache"], "groups": [group]}

    def answered(request: Message) -> tuple[int, dict[str, str], bytes]:
        fields = {"ETag": '"1"', "Cache-Control": "no-store, private"}
        return (304, fields, b"") if request.get("if-none-match") == '"1"' else (200, fields, body)

    body, path = noise(50_000), fresh()
    keys = itertools.count(1)

    def is_shared(host: str) -> bool:
        """Requests the object by a new URL, and returns true if no body of it left the origin."""
        url = shelf.make(f"{path}?key={next(keys)}", answered)
        got = box.get(url, host=host)
        assert (got.status, got.body, got.complete) == (200, body, True)
        return shelf.requests(url)[-1].get("if-none-match") is not None

    with objects_box(folder, config) as box:
        assert not is_shared(WWW)
        wait_for("it is stored", lambda: is_shared(WWW))
        assert is_shared(IMG)
        assert not is_shared(FADING), "it is in no group"
        hosts.write_text(f"={WWW}\n={IMG}\n={FADING}\n")
        wait_for("the list is read again", lambda: is_shared(FADING), timeout_s=30)
        listed = command("cache", "list", str(box.pep.config)).stdout
        assert (listed.count(path), f"http://{WWW}{path}" in listed) == (1, True), listed
        assert "removed 1 files" in command("cache", "purge", str(box.pep.config), "--host", FADING).stdout
        assert not is_shared(WWW)
    shelf.origin.close()


def test_clients_of_a_remote_get_hits_from_its_ground(folder: Path) -> None:
    shelf, body = Shelf(), noise(5000)
    path = shelf.put(fresh(), body)
    with objects_pair(folder, {WWW: shelf.address}) as pair:
        for _ in range(3):
            got = ask(pair.http, path)
            assert (got.status, got.body) == (200, body)
        assert got.get("age") is not None
        assert shelf.asked(path) == 1
        assert "objects " in pair.ground.status()
        pair.ground.kill_program()
        # The new process may not listen yet. Requests then pass by it.
        wait_for("a hit", lambda: ask(pair.http, path).get("age") is not None)
        asked, got = shelf.asked(path), ask(pair.http, path)
        assert (got.status, got.body, shelf.asked(path)) == (200, body, asked)
    shelf.origin.close()


def test_the_metrics_page_has_every_documented_counter_of_the_program(shop: Shop) -> None:
    document = (REPOSITORY / "envoy-config" / "METRICS.md").read_text()
    section = document.partition("\n## Objects")[2].partition("\n## ")[0]
    documented = set(re.findall(r"^\| `(longhaul_objects_\w+)`", section, re.MULTILINE))
    page = shop.box.pep.page(f"http://{shop.box.config['listen']['metrics']}/metrics")
    there = {name.partition("{")[0] for name in parse_metrics(page) if name.startswith("longhaul_objects_")}
    assert documented == there
    assert 'longhaul_process_up{process="longhaul-objects"} 1' in page
