"""`make bench ONLY=bytes`: bytes of http bodies on the pipe of a pair, on loopback.

Saved pages and minified scripts cross the pipe for a client that accepts gzip, as browsers over http do. Their bytes
stand beside those of gzip 6. Images of published sites are made smaller (images.py). The figures count bytes, objects
and instructions, but for the processor time of images, which is a ratio.
"""

from __future__ import annotations

import gzip
import http.client
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import brotli

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import images
from harness.boxes.grounds import WWW, GroundsBed, grounds
from harness.host.artifacts import REPOSITORY, Missing, corpora, scratch
from harness.host.waiting import wait_for
from harness.origins.http1 import Message
from harness.origins.web import Response, web_server
from harness.results.figures import at_most, table, verdicts, write

TARGETS = [
    at_most("html_vs_gzip6", 0.93),
    at_most("scripts_vs_gzip6", 0.96),
    at_most("unfit_encoding", 0),
    at_most("html_first_page_vs_today", 0.93),
    at_most("html_second_page_vs_today", 0.35),
    at_most("html_second_page_p90", 0.6),
    at_most("delta_cpu_vs_br5", 1),
    *images.TARGETS,
]
"""Today is gzip 6, as pages crossed a pair before br and deltas."""
SLOW = {"rtt": "700ms", "down": "2mbit", "up": "512kbit"}
"""A link on which bytes bound pages: br has its best level."""
FAST = {"rtt": "600ms", "down": "20mbit", "up": "5mbit"}
"""A link on which round trips bound pages: objects are sent before they are requested."""
SCRIPTS = (Path("/usr/share/javascript"), Path("/usr/share/nodejs"))
"""Folders of Debian's packages with minified scripts."""
LEAST_BYTES, MOST_BYTES = 8 << 10, 1 << 20
MOST_FILES = 60
BR_SCRIPTS = 10


@dataclass(frozen=True)
class Body:
    """A response of the origin."""

    kind: str
    content: bytes
    coding: str = ""


def _files(folder: Path, pattern: str) -> list[bytes]:
    found = {}
    for path in sorted(folder.rglob(pattern)):
        if path.is_file() and LEAST_BYTES <= path.stat().st_size <= MOST_BYTES:
            content = path.read_bytes()
            found[content] = None
    return list(found)[:MOST_FILES]


@contextmanager
def origin(bodies: dict[str, Body]) -> Iterator[str]:
    """Serves the bodies by path. Yields the address and the port."""

    def respond(request: Message) -> Response:
        body = bodies.get(request.target, Body("text/plain", b"none"))
        return Response(body.content, body.kind, {"Content-Encoding": body.coding} if body.coding else {})

    with web_server(respond) as port:
        yield f"127.0.0.1:{port}"


def fetch(bed: GroundsBed, path: str, accept: str = "*/*", host: str = WWW) -> bytes:
    """Fetches a path through the pair, as a browser over http does."""
    client = http.client.HTTPConnection("127.0.0.1", bed.http, timeout=60)
    headers = {"Host": host, "Accept": accept, "Accept-Encoding": "gzip, deflate", "User-Agent": "bench"}
    try:
        client.request("GET", path, headers=headers)
        answer = client.getresponse()
        body = answer.read()
    finally:
        client.close()
    if answer.status != 200 or answer.getheader("Content-Encoding"):
        raise RuntimeError(f"{path}: {answer.status} {answer.getheader('Content-Encoding')}")
    return body


def _counter(bed: GroundsBed, name: str, *, at_ground: bool = False) -> float:
    box = bed.grounds[0].pep if at_ground else bed.remote
    metrics = box.metrics()
    return sum(value for key, value in metrics.items() if key.startswith(f"longhaul_bundling_{name}"))


def crossed(files: list[bytes], kind: str) -> float:
    """Returns the bytes on the pipe of all files, in parts of those of gzip 6."""
    bodies = {f"/{number}": Body(kind, content) for number, content in enumerate(files)}
    with (
        tempfile.TemporaryDirectory(prefix="lh-bench-") as folder,
        origin(bodies) as address,
        grounds(Path(folder), 1, link=SLOW, origin=address, warm=0) as bed,
    ):
        before = _counter(bed, "decompressed_bytes_total")
        for path, body in bodies.items():
            if fetch(bed, path) != body.content:
                raise RuntimeError(f"{kind} {path} changed on its way")
        on_pipe = _counter(bed, "decompressed_bytes_total") - before
    return on_pipe / sum(len(gzip.compress(content, 6)) for content in files)


def page_pairs(folder: Path) -> dict[str, tuple[bytes, bytes]]:
    """Returns two pages of each site of the corpus: `SITE1.html` and `SITE2.html`, if they differ."""
    pairs = {}
    for first in sorted(folder.rglob("*1.html")):
        second = first.with_name(first.name.removesuffix("1.html") + "2.html")
        if second.is_file() and first.read_bytes() != second.read_bytes():
            pairs[first.name.removesuffix("1.html")] = (first.read_bytes(), second.read_bytes())
    return pairs


def visits(pairs: dict[str, tuple[bytes, bytes]]) -> tuple[float, list[float]]:
    """Visits two pages of each site. Returns the bytes of the first pages on the pipe and of each second page, in parts
    of those of gzip 6."""
    bodies = {
        f"/{site}/{number}": Body("text/html", page)
        for site, pages in pairs.items()
        for number, page in enumerate(pages)
    }
    first, first_gzip, second = 0.0, 0, []
    with (
        tempfile.TemporaryDirectory(prefix="lh-bench-") as folder,
        origin(bodies) as address,
        grounds(Path(folder), 1, link=SLOW, origin=address, hosts=[*pairs], warm=0) as bed,
    ):

        def crossed_for(site: str, number: int) -> float:
            names = ("decompressed_bytes_total", "delta_bytes_total")
            before = sum(_counter(bed, name) for name in names)
            path = f"/{site}/{number}"
            if fetch(bed, path, "text/html,*/*;q=0.8", site) != bodies[path].content:
                raise RuntimeError(f"{path} changed on its way")
            return sum(_counter(bed, name) for name in names) - before

        for site, pages in pairs.items():
            first += crossed_for(site, 0)
            first_gzip += len(gzip.compress(pages[0], 6))
            second.append(crossed_for(site, 1) / len(gzip.compress(pages[1], 6)))
    return first / first_gzip, second


def instructions(folder: Path) -> float | None:
    """Returns the instructions of the coder for all second pages as deltas, in parts of those for br 5. None without
    valgrind."""
    if not shutil.which("valgrind"):
        return None
    run = ["cargo", "build", "--release", "--locked", "--package", "pipe-encoding", "--example", "pairs"]
    subprocess.run([*run, "--quiet"], cwd=REPOSITORY, check=True)
    program = REPOSITORY / "target" / "release" / "examples" / "pairs"
    counts = []
    for coder in ("delta", "br", "none"):
        valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, folder, coder]
        said = subprocess.run(valgrind, capture_output=True, text=True, check=True).stderr
        [collected] = re.findall(r"Collected : (\d+)", said)
        counts.append(int(collected))
    delta, br, start = counts
    return (delta - start) / (br - start)


def br_objects() -> tuple[float, float]:
    """Returns the scripts of a page that were unfit because they are in br, and those that came unasked."""
    page = "".join(f"<script src=/{number}.js></script>" for number in range(BR_SCRIPTS))
    scripts = {f"/{number}.js": b"var a = %d;\n" % number * 4000 for number in range(BR_SCRIPTS)}
    bodies = {path: Body("text/javascript", brotli.compress(script), "br") for path, script in scripts.items()}
    bodies["/page"] = Body("text/html", f"<!doctype html><title>t</title>{page}".encode())
    with (
        tempfile.TemporaryDirectory(prefix="lh-bench-") as folder,
        origin(bodies) as address,
        grounds(Path(folder), 1, link=FAST, origin=address, warm=0) as bed,
    ):
        fetch(bed, "/page", "text/html,*/*;q=0.8")

        def is_over() -> bool:
            judged = (_counter(bed, name, at_ground=True) for name in ("objects_total", "unfit_total"))
            return sum(judged) >= BR_SCRIPTS

        wait_for("the objects of the page", is_over, timeout_s=30)
        for path, script in scripts.items():
            if fetch(bed, path) != script:
                raise RuntimeError(f"{path} changed on its way")
        unfit = _counter(bed, 'unfit_total{reason="encoding"}', at_ground=True)
        return unfit, _counter(bed, "answered_total")


def main() -> int:
    """Measures, prints and writes the figures."""
    figures: dict[str, float | None] = {}
    rows = [["files", "number", "bytes"]]
    sets: dict[str, tuple[str, list[bytes]]] = {}
    try:
        sets["html"] = ("text/html", _files(corpora() / "html" / "newspaper", "*.html"))
    except Missing as missing:
        print(f"without pages: {missing}")
    else:
        folder = next(corpora().glob("html/newspaper/**/*1.html")).parent
        pairs = page_pairs(folder)
        first, second = visits(pairs)
        figures["html_first_page_vs_today"] = first
        figures["html_second_page_vs_today"] = statistics.median(second)
        figures["html_second_page_p90"] = statistics.quantiles(second, n=10)[-1]
        figures["delta_cpu_vs_br5"] = instructions(folder)
        rows.append(
            ["pairs of pages", str(len(pairs)), str(sum(len(page) for pair in pairs.values() for page in pair))]
        )
    scripts = [content for folder in SCRIPTS if folder.is_dir() for content in _files(folder, "*.min.js")]
    sets["scripts"] = ("text/javascript", scripts)
    for name, (kind, files) in sets.items():
        if files:
            figures[f"{name}_vs_gzip6"] = crossed(files, kind)
            rows.append([name, str(len(files)), str(sum(map(len, files)))])
    figures["unfit_encoding"], figures["br_scripts_unasked"] = br_objects()
    details: dict[str, dict[str, float]] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="lh-bench-") as folder:
            of_images, details = images.measure(Path(folder))
            figures |= of_images
    except Missing as missing:
        print(f"without images: {missing}")
    results = scratch("bench") / "bytes.json"
    print(f"{table(rows)}\n\n{verdicts(figures, TARGETS)}\n\nwritten to {results}")
    write(results, figures, TARGETS, link=SLOW, images=details)
    return 0


if __name__ == "__main__":
    sys.exit(main())
