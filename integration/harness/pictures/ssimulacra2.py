"""SSIMULACRA2: how much a picture looks like another one. A score of 100 is equal, 90 is equal to the eye, and 70 is
high quality."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from PIL import Image

from harness.host.artifacts import tool


def scores(pairs: Iterable[tuple[Image.Image, Image.Image]], folder: Path) -> list[float]:
    """Returns the score of each original and its copy, which have one size. Transparency does not count. The folder
    gets the files for the tool."""
    command = [tool("ssimulacra2", "test-e2e")]
    for number, pair in enumerate(pairs):
        assert pair[0].size == pair[1].size
        for role, image in zip(("original", "copy"), pair, strict=True):
            command.append(folder / f"{number}-{role}.png")
            image.convert("RGB").save(command[-1])
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(score) for score in output.split()]
