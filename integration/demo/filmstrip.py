"""Composes the film strip: the same page side by side, second by second, by each way."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

from harness.browsers.film import Frame, frame_at

WIDTH = 1800
"""Twice the width at which a README shows it."""
LABEL, GAP, MARGIN = 250, 12, 20
HEAD, TIMES = 76, 40
RATIO = 900 / 1280
"""Of a picture's height to its width: the browser's window."""
STEPS_MS = (250, 500, 750, 1000, 1500, 2000, 3000, 5000, 10_000)
MOST_COLUMNS = 8
PAPER, INK, FAINT, DONE, BORDER = "#ffffff", "#1d2a33", "#5a6872", "#1a7f37", "#b6c0c8"
FADED = 0.5
"""Share of white in pictures after the end of the load."""
COLOURS = 220
LEGEND = "green: the page is complete"


@dataclass(frozen=True)
class Row:
    """One way: its name, its load time and its film."""

    title: str
    note: str
    load_ms: float
    film: Sequence[Frame]


def step_ms(longest_ms: float) -> int:
    """Returns the time between two pictures: the shortest one with which all loads fit."""
    return next((step for step in STEPS_MS if longest_ms / step <= MOST_COLUMNS), STEPS_MS[-1])


def times_ms(longest_ms: float) -> list[int]:
    """Returns the times of the pictures, up to the end of the longest load."""
    step = step_ms(longest_ms)
    return [step * number for number in range(1, min(math.ceil(longest_ms / step), MOST_COLUMNS) + 1)]


def compose(title: str, rows: Sequence[Row]) -> bytes:
    """Returns the strip as a PNG."""
    times = times_ms(max(row.load_ms for row in rows))
    wide = (WIDTH - 2 * MARGIN - LABEL) // len(times) - GAP
    high = round(wide * RATIO)
    image = Image.new("RGB", (WIDTH, HEAD + TIMES + len(rows) * (high + 2 * GAP) + GAP), PAPER)
    draw = ImageDraw.Draw(image)
    draw.text((MARGIN, MARGIN), title, INK, _font(36))
    draw.text((WIDTH - MARGIN - GAP, MARGIN + 8), LEGEND, DONE, _font(28), anchor="ra")
    for column, at_ms in enumerate(times):
        draw.text((_left(column, wide) + wide / 2, HEAD + TIMES / 2), _clock(at_ms), FAINT, _font(28), anchor="mm")
    for number, row in enumerate(rows):
        top = HEAD + TIMES + number * (high + 2 * GAP)
        _label(draw, row, top, high)
        done = next((at_ms for at_ms in times if at_ms >= row.load_ms), None)
        for column, at_ms in enumerate(times):
            box = (_left(column, wide), top, _left(column, wide) + wide, top + high)
            frame = frame_at(row.film, at_ms)
            if frame:
                shot = Image.open(io.BytesIO(frame.jpeg)).convert("RGB").resize((wide, high), Image.Resampling.LANCZOS)
                if done is not None and at_ms > done:
                    shot = Image.blend(shot, Image.new("RGB", shot.size, PAPER), FADED)
                image.paste(shot, box[:2])
            loaded = at_ms == done
            draw.rectangle(box, outline=DONE if loaded else BORDER, width=6 if loaded else 2)
    out = io.BytesIO()
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def _left(column: int, wide: int) -> int:
    return MARGIN + LABEL + column * (wide + GAP)


def _label(draw: ImageDraw.ImageDraw, row: Row, top: int, high: int) -> None:
    middle = top + high / 2
    draw.text((MARGIN, middle - 44), row.title, INK, _font(28), anchor="lm")
    draw.text((MARGIN, middle), f"{row.load_ms / 1000:.1f} s", INK, _font(48), anchor="lm")
    draw.text((MARGIN, middle + 44), row.note, FAINT, _font(24), anchor="lm")


def _clock(at_ms: int) -> str:
    return f"{at_ms / 1000:g} s"


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
