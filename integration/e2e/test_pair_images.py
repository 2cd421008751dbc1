"""Smaller images through a pair: the ground recodes them, and sends them to the remote before they are requested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.boxes.pair import FAIR, REDIRECTS, Ends, Pair, pair
from harness.browsers.chromium import browser
from harness.clients.commands import Curl
from harness.host.artifacts import built, need_commands
from harness.host.waiting import wait_for
from harness.lab.contenders.base import intercept, rules
from harness.lab.line import FAR, NEAR_DEVICE, NEAR_HOME, Line
from harness.net.topology import RESOLVER, SITES
from harness.origins.program import Origins, Site
from harness.pictures.photos import DRAWING, HEIGHT, PHOTO, WIDTH, is_webp, write_images

LINK = FAIR | {"rtt": "100ms", "down": "20mbit", "up": "5mbit"}
WWW = "www.images.test"
CHROMIUM = "Accept: image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
OLD = "Accept: image/png,image/*;q=0.8,*/*;q=0.5"
SIZES = "JSON.stringify([...document.images].map(one => one.naturalWidth + 'x' + one.naturalHeight))"


@dataclass
class Bed:
    """The pair, its link and the origin, all of them running."""

    folder: Path
    line: Line
    origins: Origins
    pair: Pair
    images: dict[str, bytes]

    @property
    def curl(self) -> Curl:
        return Curl(self.folder, self.line.clients)

    def answered(self) -> float:
        """Returns the number of browsers' requests that the remote served itself."""
        counted = self.pair.remote.metrics()
        return sum(value for name, value in counted.items() if name.startswith("longhaul_bundling_answered_total"))


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:  # noqa: ARG001 - order of set-up
    need_commands("curl", "chromium")
    built("longhaul-images")
    folder = tmp_path_factory.mktemp("images")
    root = folder / "site"
    root.mkdir()
    images = write_images(root)
    (root / "index.html").write_text(f"<!doctype html><title>t</title><img src=/{PHOTO}><img src=/{DRAWING}><p>end")
    host = {"address": str(next(one for one in SITES.hosts() if str(one) != RESOLVER)), "root": str(root)}
    site = Site(dns=[f"{RESOLVER}:53"], hosts={WWW: host})
    with ExitStack() as stack:
        line = stack.enter_context(Line(folder, "leo", seed=1))
        origins = stack.enter_context(Origins(site.write(folder / "site.json"), folder, line.internet))
        ends = Ends(line.near, NEAR_HOME, line.gateway, FAR)
        page = {"images": {"quality": 75}, "bundle": True}
        both = stack.enter_context(pair(folder, ends, LINK, page=page, steered=["listed.test"], warm=0))
        stack.enter_context(rules(line.near, intercept(NEAR_DEVICE, *REDIRECTS)))
        both.until_piped()
        bed = Bed(folder, line, origins, both, images)
        wait_for("a response", lambda: bed.curl.get(f"http://{WWW}/index.html").status == 200, timeout_s=60)
        yield bed


@pytest.mark.parametrize("order", [(CHROMIUM, OLD), (OLD, CHROMIUM)])
@pytest.mark.parametrize("name", [PHOTO, DRAWING])
def test_each_client_gets_its_format(bed: Bed, name: str, order: tuple[str, str]) -> None:
    url = f"http://{WWW}/{name}?order={order.index(OLD)}"
    for accept in (*order, *order):
        answer = bed.curl.get(url, "-H", accept)
        assert (answer.status, answer.problem) == (200, "")
        assert (answer.body == bed.images[name]) == (accept == OLD)
        assert is_webp(answer.body) == (accept == CHROMIUM)
        assert "Accept" in (answer.header("vary") or "").split(", ")
        assert not [field for field, _ in answer.headers if field.startswith("x-longhaul")]


def test_a_browser_gets_variants_before_it_requests_them(bed: Bed) -> None:
    before = bed.answered()
    with browser(bed.folder, bed.line.clients) as fresh, fresh.tab() as tab:
        tab.navigate(f"http://{WWW}/index.html", timeout_s=60, settle_s=0.3)
        assert tab.evaluate(SIZES) == f'["{WIDTH}x{HEIGHT}","{WIDTH}x{HEIGHT}"]'
        load = fresh.load(f"http://{WWW}/index.html?again")
    assert bed.answered() >= before + 2
    images = [one for one in load.loaded() if one.kind == "Image" and "favicon" not in one.url]
    assert {one.mime for one in images} == {"image/webp"}


def test_a_client_without_webp_behind_the_same_address_gets_the_original(bed: Bed) -> None:
    page = ("-H", "Accept: text/html,image/avif,image/webp,*/*;q=0.8", "-H", "Accept-Encoding: gzip, deflate")
    assert bed.curl.get(f"http://{WWW}/index.html", *page).status == 200
    assert bed.curl.get(f"http://{WWW}/{PHOTO}", "-H", OLD).body == bed.images[PHOTO]
    before = bed.answered()
    assert bed.curl.get(f"http://{WWW}/index.html", *page).status == 200
    answer = bed.curl.get(f"http://{WWW}/{DRAWING}", "-H", CHROMIUM)
    assert bed.answered() == before + 1, "the remote has it"
    assert is_webp(answer.body)
    assert "Accept" in (answer.header("vary") or "")


def test_origins_see_nothing_of_it(bed: Bed) -> None:
    requests = bed.origins.requests(host=WWW)
    assert requests
    assert not [one for one in requests if ".lh-webp" in one["target"]]
    assert not [one for one in requests if any("longhaul" in name.lower() for name in one.get("header", {}))]
