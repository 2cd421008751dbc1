"""Images whose pixels tests compare: a scene and a drawing, each in several files that browsers must show alike."""

from __future__ import annotations

import struct
from pathlib import Path

from PIL import Image, ImageChops, ImageCms, ImageDraw, ImageFilter

from .photos import HEIGHT, WIDTH

SCENE, TURNED, MIRRORED, WIDE = "scene.jpg", "turned.jpg", "mirrored.jpg", "wide.jpg"
DRAWING, GLASS, WIDE_GLASS = "drawing.png", "glass.png", "wide.png"
PHOTOS = (SCENE, TURNED, MIRRORED, WIDE)
DRAWINGS = (DRAWING, GLASS, WIDE_GLASS)
ORIENTATION, QUARTER_TURN, MIRROR = 0x0112, 6, 2
"""An Exif tag and two of its values."""
REC_2020 = {
    b"rXYZ": (0.67349, 0.27904, -0.00193),
    b"gXYZ": (0.16567, 0.67535, 0.02998),
    b"bXYZ": (0.12505, 0.04561, 0.79685),
}
"""The primaries of Rec. 2020, adapted to D50, under the names of their tags in a profile."""


def scene() -> Image.Image:
    """Returns a picture with the gradients, edges and grain of a photograph. No axis of symmetry."""
    fade = Image.linear_gradient("L").resize((WIDTH, HEIGHT))
    dusk, sky = Image.new("RGB", (WIDTH, HEIGHT), (250, 200, 150)), Image.new("RGB", (WIDTH, HEIGHT), (60, 110, 190))
    image = Image.composite(dusk, sky, fade)
    draw = ImageDraw.Draw(image)
    draw.ellipse((210, 40, 260, 90), fill=(255, 240, 200))
    for number, colour in enumerate([(110, 120, 140), (70, 100, 70), (40, 70, 40)]):
        top = 120 + 35 * number
        ridge = [(0, top + 20), (60 + 50 * number, top - 20), (150 + 30 * number, top + 25), (WIDTH, top + 15)]
        draw.polygon([(0, HEIGHT), *ridge, (WIDTH, HEIGHT)], fill=colour)
    draw.rectangle((60, 150, 120, 200), fill=(190, 60, 50))
    draw.polygon([(50, 150), (90, 120), (130, 150)], fill=(90, 50, 40))
    grain = Image.effect_noise((WIDTH, HEIGHT), 60).filter(ImageFilter.GaussianBlur(1)).convert("RGB")
    return ImageChops.overlay(image.filter(ImageFilter.GaussianBlur(1)), grain)


def drawing(alphas: tuple[int, ...]) -> Image.Image:
    """Returns shapes of few colours on a transparent ground. The shapes take turns with the alphas."""
    image = Image.new("RGBA", (WIDTH, HEIGHT))
    draw = ImageDraw.Draw(image)
    for number in range(60):
        x, y = number * 37 % WIDTH, number * 53 % HEIGHT
        colour = (number * 4, 255 - number * 3, number * 7 % 256, alphas[number % len(alphas)])
        draw.ellipse((x, y, x + 60, y + 40), fill=colour)
    return image


def wide_profile() -> bytes:
    """Returns an ICC profile with the primaries of Rec. 2020 and the transfer curve of sRGB."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    (tags,) = struct.unpack_from(">I", profile, 128)
    for entry in range(tags):
        name, at, _ = struct.unpack_from(">4sII", profile, 132 + 12 * entry)
        if name in REC_2020:
            struct.pack_into(">3i", profile, at + 8, *(round(value * 65536) for value in REC_2020[name]))
    return bytes(profile)


def write_scenes(folder: Path) -> None:
    """Writes all files into a folder."""
    image, glass, profile = scene(), drawing((255, 195, 135, 75)), wide_profile()
    image.save(folder / SCENE, quality=90)
    for name, value in ((TURNED, QUARTER_TURN), (MIRRORED, MIRROR)):
        exif = Image.Exif()
        exif[ORIENTATION] = value
        image.save(folder / name, quality=90, exif=exif)
    image.save(folder / WIDE, quality=90, icc_profile=profile)
    drawing((255,)).save(folder / DRAWING)
    glass.save(folder / GLASS)
    glass.save(folder / WIDE_GLASS, icc_profile=profile)
