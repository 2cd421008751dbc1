"""`make bench ONLY=bytes`: bytes of http bodies on the pipe of a pair, on loopback.

Saved pages and minified scripts cross the pipe for a client that accepts gzip, as browsers over http do. Their bytes
stand beside those of gzip 6. The figures count bytes and objects. None of them is a time.
"""

from __future__ import annotations

import gzip
import http.client
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import brotli

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.artifacts import Missing, corpora, scratch
from harness.figures import at_most, table, verdicts, write
from harness.grounds import WWW, GroundsBed, grounds
from harness.waiting import wait_for

TARGETS = [at_most("html_vs_gzip6", 0.93), at_most("scripts_vs_gzip6", 0.96), at_most("unfit_coding", 0)]
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

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = bodies.get(self.path, Body("text/plain", b"none"))
            self.send_response(200)
            self.send_header("Content-Type", body.kind)
            self.send_header("Content-Length", str(len(body.content)))
            if body.coding:
                self.send_header("Content-Encoding", body.coding)
            self.end_headers()
            self.wfile.write(body.content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def fetch(bed: GroundsBed, path: str, accept: str = "*/*") -> bytes:
    """Fetches a path through the pair, as a browser over http does."""
    client = http.client.HTTPConnection("127.0.0.1", bed.http, timeout=60)
    headers = {"Host": WWW, "Accept": accept, "Accept-Encoding": "gzip, deflate", "User-Agent": "bench"}
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
    box, admin = (bed.grounds[0].pep, bed.grounds[0].admin) if at_ground else (bed.remote, bed.remote_admin)
    metrics = box.metrics(admin)
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
        unfit = _counter(bed, 'unfit_total{reason="coding"}', at_ground=True)
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
    scripts = [content for folder in SCRIPTS if folder.is_dir() for content in _files(folder, "*.min.js")]
    sets["scripts"] = ("text/javascript", scripts)
    for name, (kind, files) in sets.items():
        if files:
            figures[f"{name}_vs_gzip6"] = crossed(files, kind)
            rows.append([name, str(len(files)), str(sum(map(len, files)))])
    figures["unfit_coding"], figures["br_scripts_unasked"] = br_objects()
    results = scratch("bench") / "bytes.json"
    print(f"{table(rows)}\n\n{verdicts(figures, TARGETS)}\n\nwritten to {results}")
    write(results, figures, link=SLOW)
    return 0


if __name__ == "__main__":
    sys.exit(main())
