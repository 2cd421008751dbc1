"""Smaller images in a real browser: it shows the pixels of the origin's PNG images, and pictures that look like the
origin's JPEG images, in their orientation and their colours."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from PIL import Image, ImageOps

from harness.boxes.image_box import image_box
from harness.browsers.chromium import Tab, browser, requests_of
from harness.host.artifacts import built, need_commands
from harness.host.ports import free_ports
from harness.origins.program import Origins, Site
from harness.pictures.photos import HEIGHT, WIDTH
from harness.pictures.scenes import (
    DRAWING,
    DRAWINGS,
    GLASS,
    MIRRORED,
    PHOTOS,
    SCENE,
    TURNED,
    WIDE,
    WIDE_GLASS,
    write_scenes,
)
from harness.pictures.ssimulacra2 import scores

BOXED, DIRECT = "www.example.org", "direct.example.org"
LEAST_SCORE = 68
"""The bound of the bench for nine photos in ten. Of the scene, quality 75 has 72 and quality 50 has 61."""
LOWER_QUALITY = 50
PIXELS = """(() => {
    const image = document.images[INDEX], size = [image.naturalWidth, image.naturalHeight];
    const context = new OffscreenCanvas(...size).getContext('2d');
    context.drawImage(image, 0, 0);
    const {data} = context.getImageData(0, 0, ...size);
    return JSON.stringify([...size, new Uint8Array(data.buffer).toBase64()]);
})()"""
"""Script: the natural size of an image of the page, and what the browser draws of it, as RGBA in sRGB."""


@dataclass(frozen=True)
class Shown:
    """One image in the browser."""

    mime: str
    picture: Image.Image


@dataclass(frozen=True)
class Views:
    """The browser's images by name, through the box and directly from the origin."""

    boxed: dict[str, Shown]
    direct: dict[str, Shown]

    def pair(self, name: str) -> tuple[Image.Image, Image.Image]:
        """Returns the origin's picture and the box's."""
        return self.direct[name].picture, self.boxed[name].picture


def look(tab: Tab, host: str) -> dict[str, Shown]:
    """Loads the page of a host. Returns its images by name."""
    tab.navigate(f"http://{host}/index.html", timeout_s=30, settle_s=0.2)
    mimes = {urlsplit(one.url).path.strip("/"): one.mime for one in requests_of(tab.events()) if one.loaded}
    shown = {}
    for number, name in enumerate(PHOTOS + DRAWINGS):
        width, height, pixels = json.loads(tab.evaluate(PIXELS.replace("INDEX", str(number))))
        picture = Image.frombytes("RGBA", (width, height), base64.b64decode(pixels))
        shown[name] = Shown(mimes[name], picture)
    return shown


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Views:
    need_commands("chromium")
    built("origins")
    folder = tmp_path_factory.mktemp("images-browser")
    root = folder / "site"
    root.mkdir()
    write_scenes(root)
    (root / "index.html").write_text("<!doctype html>" + "".join(f"<img src=/{name}>" for name in PHOTOS + DRAWINGS))
    http, dns = free_ports(2)
    addresses = {BOXED: "127.78.5.1", DIRECT: "127.78.5.2"}
    hosts = {name: {"address": address, "root": str(root)} for name, address in addresses.items()}
    site = Site(dns=[f"127.0.0.1:{dns}"], http_port=http, hosts=hosts).write(folder / "site.json")
    with Origins(site, folder), image_box(folder, f"127.0.0.1:{dns}", {BOXED: f"{addresses[BOXED]}:{http}"}) as box:
        rules = f"MAP {BOXED}:80 127.0.0.1:{box.http},MAP {DIRECT}:80 {addresses[DIRECT]}:{http}"
        with browser(folder, flags=(f"--host-resolver-rules={rules}",)) as chromium:
            with chromium.tab() as tab:
                boxed = look(tab, BOXED)
            with chromium.tab() as tab:
                direct = look(tab, DIRECT)
    return Views(boxed, direct)


@pytest.mark.parametrize("name", PHOTOS + DRAWINGS)
def test_the_browser_gets_variants_from_the_box_alone(views: Views, name: str) -> None:
    assert views.boxed[name].mime == "image/webp"
    assert views.direct[name].mime == ("image/png" if name in DRAWINGS else "image/jpeg")


@pytest.mark.parametrize("name", [DRAWING, WIDE_GLASS])
def test_every_pixel_of_a_png_is_the_same(views: Views, name: str) -> None:
    original, variant = views.pair(name)
    assert (variant.size, variant.tobytes()) == (original.size, original.tobytes())


def test_translucent_pixels_differ_by_the_rounding_of_the_browser(views: Views) -> None:
    """Chromium multiplies colours by alpha as it decodes, and rounds them in PNG and WebP in another way. It does not
    where a profile is applied first."""
    original, variant = (one.convert("RGBa").tobytes() for one in views.pair(GLASS))
    assert variant[3::4] == original[3::4], "alpha"
    assert max(abs(one - other) for one, other in zip(original, variant, strict=True)) <= 1


@pytest.mark.parametrize("name", PHOTOS)
def test_a_jpeg_looks_the_same(views: Views, name: str, tmp_path: Path) -> None:
    original, variant = views.pair(name)
    assert variant.size == original.size == ((HEIGHT, WIDTH) if name == TURNED else (WIDTH, HEIGHT))
    assert scores([(original, variant)], tmp_path)[0] >= LEAST_SCORE


def test_the_comparison_sees_quality_orientation_and_profile(views: Views, tmp_path: Path) -> None:
    scene = views.direct[SCENE].picture
    worse = io.BytesIO()
    scene.save(worse, "WEBP", quality=LOWER_QUALITY)
    losses = [
        (scene, Image.open(worse)),
        (views.direct[MIRRORED].picture, scene),
        (views.direct[TURNED].picture, ImageOps.flip(views.direct[TURNED].picture)),
        (views.direct[WIDE].picture, scene),
    ]
    assert max(scores(losses, tmp_path)) < LEAST_SCORE
    glass, wide = views.direct[GLASS].picture, views.direct[WIDE_GLASS].picture
    assert glass.tobytes() != wide.tobytes()
    assert set(wide.getchannel("A").tobytes()) > {0, 255}, "some pixels are translucent"
