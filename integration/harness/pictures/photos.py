"""Images for tests: photographs, drawings, and hostile files."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter

WIDTH, HEIGHT = 320, 240
PHOTO, DRAWING = "photo.jpg", "drawing.png"
HOSTILE = ("truncated.jpg", "bomb.png", "named.jpg", "noise.png", "animated.png")
PIXELS_OF_THE_BOMB = 100_000_000


def photo(quality: int = 90) -> bytes:
    """Returns a JPEG image with the smooth colours and the grain of a photograph."""
    grain = [Image.effect_noise((WIDTH, HEIGHT), 60).filter(ImageFilter.GaussianBlur(radius)) for radius in (1, 2, 3)]
    return _saved(Image.merge("RGB", grain), "JPEG", quality=quality)


def drawing() -> bytes:
    """Returns a PNG image with shapes of few colours."""
    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw = ImageDraw.Draw(image)
    for number in range(60):
        x, y = number * 37 % WIDTH, number * 53 % HEIGHT
        draw.ellipse((x, y, x + 60, y + 40), fill=(number * 4, 255 - number * 3, number * 7 % 256))
    return _saved(image, "PNG")


def is_webp(body: bytes) -> bool:
    """Returns true if the body is a whole WebP image of the size of the images here."""
    is_whole = body[:4] == b"RIFF" and len(body) == 8 + struct.unpack("<I", body[4:8])[0]
    return is_whole and Image.open(io.BytesIO(body)).size == (WIDTH, HEIGHT)


def write_images(folder: Path) -> dict[str, bytes]:
    """Writes all images into a folder. Returns their bytes by name."""
    image = photo()
    images = {
        PHOTO: image,
        DRAWING: drawing(),
        "truncated.jpg": image[: len(image) // 2],
        "bomb.png": _bomb(),
        "named.jpg": drawing(),
        "noise.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20,
        "animated.png": _animated(),
    }
    for name, body in images.items():
        (folder / name).write_bytes(body)
    return images


def _saved(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _animated() -> bytes:
    frames = [Image.effect_noise((WIDTH // 4, HEIGHT // 4), 40 + number).convert("RGB") for number in range(3)]
    return _saved(frames[0], "PNG", save_all=True, append_images=frames[1:])


def _bomb() -> bytes:
    """Returns a valid PNG image of 100 megapixels in 100 KB."""
    side = int(PIXELS_OF_THE_BOMB**0.5)
    rows = zlib.compress(bytes((side + 1) * side), 9)
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*one) for one in ((b"IHDR", header), (b"IDAT", rows), (b"IEND", b"")))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
