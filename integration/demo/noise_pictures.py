"""Draws the pictures of the magazine: seas and hills in changing light, the same in every run.

Each has the grain of a photograph, so that its file is as large as a photograph of its size.
"""

from __future__ import annotations

import io
import math
import random
from functools import cache

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageOps

LIGHTS = (
    # sky above, sky at the horizon, the nearest hill, sun
    ("#27496d", "#f6d6ad", "#0c2233", "#fff3d6"),
    ("#6fb7e3", "#e9f4f7", "#1f4d3a", "#ffffff"),
    ("#3b2b56", "#f29e7a", "#1a1026", "#ffe0a3"),
    ("#8aa6b8", "#dfe6e6", "#2c3a40", "#fafafa"),
    ("#0f6e84", "#f7e3b5", "#05313d", "#fff6cf"),
    ("#b65c4a", "#ffd9a0", "#3a1614", "#fff0c2"),
)
HILLS = 5
GRAIN = 26
"""Standard deviation of the noise, of 255."""
TILE = 256
"""Side of the square of noise, in pixels."""
QUALITY = 78


def picture(width: int, height: int, seed: str) -> bytes:
    """Returns a JPEG of this size in pixels. Equal seeds give equal pictures."""
    draw = random.Random(seed)
    above, horizon, near, sun = draw.choice(LIGHTS)
    image = ImageOps.colorize(Image.linear_gradient("L").resize((width, height)), above, horizon)
    _shine(image, draw, sun)
    for number in range(HILLS):
        share = (number + 1) / HILLS
        colour = ImageOps.colorize(Image.new("L", (1, 1), round(255 * share)), horizon, near).getpixel((0, 0))
        ImageDraw.Draw(image).polygon(_ridge(width, height, share, draw), fill=colour)
    out = io.BytesIO()
    _grained(image).save(out, "JPEG", quality=QUALITY)
    return out.getvalue()


def _shine(image: Image.Image, draw: random.Random, colour: str) -> None:
    """Paints the sun and the light around it."""
    width, height = image.size
    x, y, radius = draw.uniform(0.2, 0.8) * width, draw.uniform(0.15, 0.4) * height, 0.07 * height
    mask = Image.new("L", image.size)
    for size, light in ((3.2, 60), (1.8, 90), (1.0, 255)):
        box = (x - size * radius, y - size * radius, x + size * radius, y + size * radius)
        ImageDraw.Draw(mask).ellipse(box, fill=light)
    image.paste(Image.new("RGB", image.size, colour), mask=mask.filter(ImageFilter.GaussianBlur(radius / 4)))


def _ridge(width: int, height: int, share: float, draw: random.Random) -> list[tuple[float, float]]:
    """Returns the outline of a hill. A share of 1 is the nearest."""
    waves = [(draw.uniform(1, 9), draw.uniform(0, math.tau), draw.uniform(0.2, 1)) for _ in range(5)]
    base, swing = (0.45 + 0.4 * share) * height, 0.035 * height * (1.6 - share)

    def top(x: int) -> float:
        return base + swing * sum(size * math.sin(rate * math.tau * x / width + phase) for rate, phase, size in waves)

    return [(0, height), *((x, top(x)) for x in range(0, width + 4, 4)), (width + 4, height)]


def _grained(image: Image.Image) -> Image.Image:
    """Adds noise."""
    noise = Image.new("L", image.size)
    for x in range(0, image.width, TILE):
        for y in range(0, image.height, TILE):
            noise.paste(_tile(), (x, y))
    return ImageChops.soft_light(image, Image.merge("RGB", (noise, noise, noise)))


@cache
def _tile() -> Image.Image:
    """Returns noise from the module's own generator. Pillow's noise differs between runs."""
    draw = random.Random("grain")
    grey = bytes(max(0, min(255, round(draw.gauss(128, GRAIN)))) for _ in range(TILE * TILE))
    return Image.frombytes("L", (TILE, TILE), grey)
