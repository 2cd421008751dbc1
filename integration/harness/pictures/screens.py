"""Compares two screenshots."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageChops


@dataclass(frozen=True)
class Comparison:
    """The difference of two screenshots."""

    differing: float
    """Share of pixels that differ visibly, 0 to 1."""
    picture: Image.Image
    """The differing pixels, white on black."""


VISIBLE = 24
"""Least difference of a colour channel (0 to 255) that counts. Antialiasing causes smaller ones."""


def compare(left: bytes, right: bytes, *, top_px: int | None = None) -> Comparison:
    """Compares two PNGs, or their uppermost pixels. Images of different size differ completely."""
    first, second = (Image.open(io.BytesIO(png)).convert("RGB") for png in (left, right))
    if top_px is not None:
        first, second = (one.crop((0, 0, one.width, min(top_px, one.height))) for one in (first, second))
    if first.size != second.size:
        return Comparison(1.0, Image.new("L", first.size, 255))
    channels = ImageChops.difference(first, second).split()
    most = ImageChops.lighter(ImageChops.lighter(channels[0], channels[1]), channels[2])
    picture = most.point(lambda value: 255 if value >= VISIBLE else 0)
    white = picture.histogram()[255]
    return Comparison(white / (first.width * first.height), picture)


def save(png: bytes, path: Path) -> Path:
    """Writes a screenshot."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png)
    return path
