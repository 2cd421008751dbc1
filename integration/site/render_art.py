"""Draws the demo site's pictures from art/*.svg. Run it after changing a drawing; its results are committed.

python3 integration/site/render_art.py    (needs Chromium, and Pillow from requirements.txt)
"""

from __future__ import annotations

import base64
import io
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).resolve().parent
PICTURES = (
    # drawing, width, height, file
    ("harbour", 960, 540, "img.demo.test/harbour-960.jpg"),
    ("harbour", 480, 270, "img.demo.test/harbour-480.jpg"),
    ("island", 480, 320, "img.demo.test/island.png"),
    ("island", 960, 640, "img.demo.test/island-2x.png"),
    ("dish", 480, 320, "img.demo.test/dish.jpg"),
    ("dish", 480, 320, "cdn.demo.test/poster.jpg"),
    ("bakery", 600, 160, "ads.demo.test/bakery.png"),
    ("bakery", 300, 80, "ads.demo.test/bakery-small.gif"),
    ("paper", 96, 96, "cdn.demo.test/paper.png"),
    ("icon", 64, 64, "cdn.demo.test/favicon.ico"),
    ("icon", 180, 180, "cdn.demo.test/touch-icon.png"),
)


def main() -> None:
    """Renders every picture at the size it is used at."""
    for drawing, width, height, name in PICTURES:
        target = HERE / name
        picture = render(HERE / "art" / f"{drawing}.svg", width, height)
        if target.suffix == ".jpg":
            picture.save(target, quality=76, optimize=True, progressive=True)
        elif target.suffix in (".png", ".gif"):
            picture.quantize(96).save(target, optimize=True)
        else:
            picture.save(target)
        print(f"{name}: {target.stat().st_size} bytes")


def render(drawing: Path, width: int, height: int) -> Image.Image:
    """The drawing as the browser paints it, at twice the size and scaled down for smooth edges."""
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--screenshot={shot}",
             f"--user-data-dir={folder}/profile", f"--window-size={2 * width},{2 * height}",
             f"data:text/html,<body style='margin:0'><img style='width:100vw;height:100vh' src='{as_data(drawing)}'>"],
            check=True, capture_output=True,
        )  # fmt: skip
        return (
            Image.open(io.BytesIO(shot.read_bytes())).convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
        )


def as_data(drawing: Path) -> str:
    """A data URL of the drawing, which may not contain quotes or number signs of its own."""
    return "data:image/svg%2Bxml;base64," + base64.b64encode(drawing.read_bytes()).decode().replace("+", "%2B")


if __name__ == "__main__":
    main()
