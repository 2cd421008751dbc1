"""Smaller images: clients that accept WebP get it, all others get the origin's bytes, and nothing depends on the
program that recodes."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.boxes.image_box import ImageBox, image_box
from harness.browsers.chromium import browser
from harness.clients.commands import Answer, Curl
from harness.host.artifacts import built, need_commands
from harness.host.ports import free_ports
from harness.host.waiting import wait_for
from harness.origins.program import Origins, Site
from harness.pictures.photos import DRAWING, HEIGHT, HOSTILE, PHOTO, WIDTH, is_webp, write_images

WWW, STRICT, MAPS = "www.example.org", "strict.example.org", "maps.example.org"
CHROMIUM = "Accept: image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
OLD = "Accept: image/png,image/*;q=0.8,*/*;q=0.5"
KILLS, CLIENTS = 4, 4

_fresh = itertools.count(1)


def fresh(name: str) -> str:
    """Returns a path of the image that was never requested."""
    return f"/{name}?fresh={next(_fresh)}"


@dataclass
class Gallery:
    """A box with a slow link, and a site with images behind it."""

    folder: Path
    images: dict[str, bytes]
    box: ImageBox
    origins: Origins

    def get(self, path: str, *fields: str, host: str = WWW) -> Answer:
        options = [option for field in fields for option in ("-H", field)]
        return Curl(self.folder).get(f"http://127.0.0.1:{self.box.http}{path}", "-H", f"Host: {host}", *options)

    def asked(self, path: str) -> int:
        return len(self.origins.requests(target=path))

    def sent(self, path: str) -> list[int]:
        """Returns the bytes of the responses to clients for a path, from the access log."""
        return [one["bytes_out"] for one in self.box.pep.requests() if one.get("path") == path]

    def counted(self, name: str) -> float:
        """Returns a counter of the program."""
        at = f"http://127.0.0.1:{self.box.image_metrics}/metrics"
        lines = Curl(self.folder).get(at).body.decode().splitlines()
        return next(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"longhaul_images_{name} "))


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gallery]:
    need_commands("curl")
    built("origins")
    folder = tmp_path_factory.mktemp("images")
    root = folder / "site"
    root.mkdir()
    images = write_images(root)
    (root / "index.html").write_text(f"<!doctype html><img src=/{PHOTO}><img src=/{DRAWING}>")
    http, dns = free_ports(2)
    headers = {WWW: {}, STRICT: {"Cache-Control": "max-age=60, no-transform"}, MAPS: {}}
    hosts = {
        name: {"address": f"127.78.4.{number}", "root": str(root), "header": header}
        for number, (name, header) in enumerate(headers.items(), 1)
    }
    site = Site(dns=[f"127.0.0.1:{dns}"], http_port=http, hosts=hosts)
    where = {name: f"{host['address']}:{http}" for name, host in hosts.items()}
    with (
        Origins(site.write(folder / "site.json"), folder) as origins,
        image_box(folder, f"127.0.0.1:{dns}", where, exclude=[MAPS]) as box,
    ):
        yield Gallery(folder, images, box, origins)


def until_cached(gallery: Gallery, path: str, accept: str) -> Answer:
    """Requests an image until the cache has it. Returns the response from the cache."""
    wait_for("the cache to have it", lambda: gallery.get(path, accept).header("age") is not None)
    asked = gallery.asked(path)
    answer = gallery.get(path, accept)
    assert gallery.asked(path) == asked
    return answer


@pytest.mark.parametrize("name", [PHOTO, DRAWING])
@pytest.mark.parametrize("order", [(CHROMIUM, OLD), (OLD, CHROMIUM)])
def test_each_client_gets_its_format_from_the_origin_and_from_the_cache(
    gallery: Gallery, name: str, order: tuple[str, str]
) -> None:
    path = fresh(name)
    for accept in order:
        first, kept = gallery.get(path, accept), until_cached(gallery, path, accept)
        assert (first.status, kept.status, first.problem) == (200, 200, "")
        assert first.body == kept.body
        assert not [field for field, _ in first.headers if field.startswith("x-longhaul")]
        if accept == OLD:
            assert first.body == gallery.images[name]
            assert "lh-webp" not in (first.header("etag") or "")
        else:
            assert is_webp(first.body)
            assert len(first.body) <= 0.9 * len(gallery.images[name])
            assert (first.header("content-type"), kept.header("content-type")) == ("image/webp", "image/webp")
            assert (first.header("etag") or "").endswith(';lh-webp75"')
            assert "Accept" in [item.strip() for item in (kept.header("vary") or "").split(",")]
    # The order of the first requests does not matter later, either.
    assert gallery.get(path, OLD).body == gallery.images[name]
    assert is_webp(gallery.get(path, CHROMIUM).body)


@pytest.mark.parametrize(
    "fields",
    [["Cache-Control: no-cache"], ["Range: bytes=0-99"], ["Origin: http://a.example"], ["Authorization: Basic YTpi"]],
    ids=["reload", "range", "cors", "authorization"],
)
def test_a_client_that_wants_the_very_bytes_gets_them(gallery: Gallery, fields: list[str]) -> None:
    path = fresh(PHOTO)
    assert is_webp(until_cached(gallery, path, CHROMIUM).body), "the neighbour"
    answer = gallery.get(path, CHROMIUM, *fields)
    wanted = gallery.images[PHOTO][:100] if "Range" in fields[0] else gallery.images[PHOTO]
    assert (answer.status, answer.body) == (206 if "Range" in fields[0] else 200, wanted)


@pytest.mark.parametrize("host", [STRICT, MAPS])
def test_an_origin_and_an_operator_may_forbid_it(gallery: Gallery, host: str) -> None:
    path = fresh(PHOTO)
    for _ in range(3):
        assert gallery.get(path, CHROMIUM, host=host).body == gallery.images[PHOTO]


def test_a_client_validates_its_variant(gallery: Gallery) -> None:
    path = fresh(PHOTO)
    tag = gallery.get(path, CHROMIUM).header("etag")
    answer = gallery.get(path, CHROMIUM, f"If-None-Match: {tag}")
    assert (answer.status, answer.body, answer.header("etag")) == (304, b"", tag)
    assert gallery.get(path, CHROMIUM, 'If-None-Match: W/"other;lh-webp75"').status == 200


def test_a_client_cannot_say_what_only_longhaul_says(gallery: Gallery) -> None:
    path = fresh(PHOTO)
    assert gallery.get(path, OLD, "x-longhaul-image: webp").body == gallery.images[PHOTO]
    forged = gallery.get(f"/.lh-webp{path}", OLD, "x-longhaul-image: webp")
    assert forged.status == 404, "the origin has no such path"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_image_passes_as_it_is(gallery: Gallery, name: str) -> None:
    pid = gallery.box.program()
    answer = gallery.get(fresh(name), CHROMIUM)
    assert (answer.status, answer.problem) == (200, "")
    assert answer.body == gallery.images[name]
    assert gallery.box.program() == pid
    assert is_webp(gallery.get(fresh(PHOTO), CHROMIUM).body), "the next image"


def test_no_request_fails_while_the_program_is_killed(gallery: Gallery) -> None:
    done = threading.Event()
    bodies: list[bytes] = []
    failed: list[Answer] = []

    def load() -> None:
        while not done.is_set():
            answer = gallery.get(fresh(PHOTO), CHROMIUM)
            if answer.status == 200 and (answer.body == gallery.images[PHOTO] or is_webp(answer.body)):
                bodies.append(answer.body)
            else:
                failed.append(answer)

    threads = [threading.Thread(target=load) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for _ in range(KILLS):
        seen = len(bodies)
        wait_for("images to come", lambda seen=seen: len(bodies) > seen + 2 * CLIENTS)
        gallery.box.kill_program()
    done.set()
    for thread in threads:
        thread.join()
    assert not failed, failed[0]
    assert any(is_webp(body) for body in bodies)
    assert "longhaul-images" in gallery.box.pep.output()


def test_variants_are_counted(gallery: Gallery) -> None:
    before = gallery.counted("shrunk_total")
    assert is_webp(gallery.get(fresh(PHOTO), CHROMIUM).body)
    assert gallery.counted("shrunk_total") == before + 1


def test_a_browser_shows_the_variants(gallery: Gallery) -> None:
    need_commands("chromium")
    rule = f"--host-resolver-rules=MAP {WWW}:80 127.0.0.1:{gallery.box.http}"
    with browser(gallery.folder, flags=(rule,)) as fresh_browser, fresh_browser.tab() as tab:
        tab.navigate(f"http://{WWW}/index.html", timeout_s=30, settle_s=0.2)
        sizes = tab.evaluate("JSON.stringify([...document.images].map(one => [one.naturalWidth, one.naturalHeight]))")
    assert json.loads(sizes) == [[WIDTH, HEIGHT]] * 2
    for name in (PHOTO, DRAWING):
        logged = wait_for(f"the log line of {name}", lambda name=name: gallery.sent(f"/{name}"))
        assert logged[-1] < 0.9 * len(gallery.images[name])
