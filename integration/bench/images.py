"""A part of `make bench ONLY=bytes`: images of published sites made smaller, beside Debian's `cwebp`; and the program's
death at an edge under load.

Each image goes through the child process of `longhaul-images`, as in the product. Processor time is that of whole
processes, with their starts. Without cwebp (package webp) its figure is missing.
"""

from __future__ import annotations

import http.client
import io
import resource
import shutil
import statistics
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageOps

from harness.boxes.image_box import image_box
from harness.host.artifacts import Missing, built, corpora
from harness.origins.http1 import Message
from harness.origins.web import Response, web_server
from harness.pictures.ssimulacra2 import scores
from harness.results.figures import at_least, at_most

TARGETS = [
    at_most("jpeg_bytes_vs_original", 0.5),
    at_least("jpeg_ssimulacra2_median", 73),
    at_least("jpeg_ssimulacra2_p10", 68),
    at_most("png_bytes_vs_original", 0.6),
    at_most("png_pixels_changed", 0),
    at_most("images_larger", 0),
    at_most("image_cpu_vs_cwebp", 1.2),
    at_most("failed_requests_when_service_is_killed", 0),
]
QUALITY, METHOD, PIXELS = 75, 4, 8_000_000
MEMORY_BYTES, CPU_S = 128 << 20, 5
LOAD_S, CLIENTS, ALIVE_S = 15.0, 6, 1.2
WWW = "www.example.org"
RECODED = 255
"""In the child's result, in place of a reason."""
TASK, RESULT = struct.Struct("<BBBBQI"), struct.Struct("<BBII")


@dataclass(frozen=True)
class Done:
    """One image: its file, its variant, and the processor seconds of both programs."""

    file: Path
    variant: bytes | None
    ours_s: float
    cwebp_s: float | None

    @property
    def before(self) -> int:
        """Bytes of the original."""
        return self.file.stat().st_size

    @property
    def after(self) -> int:
        """Bytes that a client gets."""
        return self.before if self.variant is None else len(self.variant)


def _seconds(command: list[str | Path], given: bytes = b"") -> tuple[float, bytes]:
    """Runs a command. Returns its processor seconds and its output."""

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    output = subprocess.run(command, input=given, capture_output=True, check=True).stdout
    return spent() - before, output


def _recode(file: Path) -> tuple[float, bytes | None]:
    content = file.read_bytes()
    task = TASK.pack(file.suffix == ".png", QUALITY, 0, METHOD, PIXELS, len(content))
    child = [built("longhaul-images"), "--worker", str(MEMORY_BYTES), str(CPU_S)]
    seconds, output = _seconds(child, task + content)
    _, reason, _, length = RESULT.unpack_from(output)
    variant = output[RESULT.size :]
    assert len(variant) == length, file
    return seconds, variant if reason == RECODED else None


def _cwebp(file: Path, folder: Path) -> float | None:
    if shutil.which("cwebp") is None:
        return None
    mode = ["-lossless", "-exact"] if file.suffix == ".png" else []
    return _seconds(["cwebp", "-quiet", "-m", str(METHOD), "-q", str(QUALITY), *mode, file, "-o", folder / "c.webp"])[0]


def _photo_pairs(photos: list[Done]) -> Iterator[tuple[Image.Image, Image.Image]]:
    """Yields each photo and its variant, in the orientation in which browsers show them."""
    for photo in photos:
        yield ImageOps.exif_transpose(Image.open(photo.file)), Image.open(io.BytesIO(photo.variant or b""))


def _pixels_changed(done: Done, folder: Path) -> bool:
    (folder / "variant.webp").write_bytes(done.variant or b"")
    one, other = Image.open(done.file), Image.open(folder / "variant.webp")
    return one.convert("RGBA").tobytes() != other.convert("RGBA").tobytes()


def _is_whole(status: int, body: bytes, original: bytes) -> bool:
    is_variant = body[:4] == b"RIFF" and len(body) == 8 + int.from_bytes(body[4:8], "little") < len(original)
    return status == 200 and (body == original or is_variant)


def _load(port: int, images: list[bytes], first: int, end_s: float, outcomes: list[bool]) -> None:
    """Requests one image after the other, each under a URL of its own, so that no cache has it."""
    number = first
    while time.monotonic() < end_s:
        number += CLIENTS
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            path = f"/{number % len(images)}?{number}"
            connection.request("GET", path, headers={"Host": WWW, "Accept": "image/webp,*/*"})
            response = connection.getresponse()
            outcomes.append(_is_whole(response.status, response.read(), images[number % len(images)]))
        except (OSError, http.client.HTTPException):
            outcomes.append(False)
        finally:
            connection.close()


def failed_requests(files: list[Path], folder: Path) -> tuple[float, dict[str, float]]:
    """Kills the program of an edge under load. Returns the number of requests that got neither the original nor the
    whole variant, and how many requests and kills there were."""
    images = [file.read_bytes() for file in files]

    def respond(request: Message) -> Response:
        return Response(images[int(request.target.strip("/").split("?")[0])], "image/jpeg")

    outcomes: list[bool] = []
    kills = 0
    with web_server(respond) as origin, image_box(folder, "127.0.0.1:1", {WWW: f"127.0.0.1:{origin}"}) as box:
        end_s = time.monotonic() + LOAD_S
        clients = [
            threading.Thread(target=_load, args=(box.http, images, first, end_s, outcomes)) for first in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        while time.monotonic() < end_s - ALIVE_S:
            time.sleep(ALIVE_S)
            box.kill_program()
            kills += 1
        for client in clients:
            client.join()
    assert outcomes, "no request was made"
    return float(outcomes.count(False)), {"requests": len(outcomes), "kills": kills}


def measure(folder: Path) -> tuple[dict[str, float | None], dict[str, dict[str, float]]]:
    """Returns the figures of `TARGETS`, and details of every image and of the load."""
    images = sorted((corpora() / "images/web").glob("*.[jp][pn]g"))
    if not images:
        raise Missing(f"no images in {corpora() / 'images/web'}")
    done = []
    for file in images:
        seconds, variant = _recode(file)
        done.append(Done(file, variant, seconds, _cwebp(file, folder)))
    photos = [one for one in done if one.file.suffix == ".jpg"]
    drawings = [one for one in done if one.file.suffix == ".png"]
    recoded = [one for one in done if one.variant is not None]
    scored = scores(_photo_pairs([one for one in photos if one.variant is not None]), folder)
    changed = [one for one in drawings if one.variant is not None and _pixels_changed(one, folder)]
    beside = [one for one in recoded if one.cwebp_s is not None]
    failed, load = failed_requests([one.file for one in photos], folder)
    rows: dict[str, dict[str, float]] = {
        one.file.name: {"before": one.before, "after": one.after, "cpu_s": one.ours_s} for one in done
    }
    figures: dict[str, float | None] = {
        "jpeg_bytes_vs_original": sum(one.after for one in photos) / sum(one.before for one in photos),
        "jpeg_ssimulacra2_median": statistics.median(scored),
        "jpeg_ssimulacra2_p10": statistics.quantiles(scored, n=10)[0],
        "png_bytes_vs_original": sum(one.after for one in drawings) / sum(one.before for one in drawings),
        "png_pixels_changed": len(changed),
        "images_larger": sum(one.after > one.before for one in done),
        "image_cpu_vs_cwebp": sum(one.ours_s for one in beside) / sum(one.cwebp_s or 0 for one in beside)
        if beside
        else None,
        "failed_requests_when_service_is_killed": failed,
    }
    return figures, {"load": load, **rows}
