"""Figures of what one client can hold of all that clients share."""

from __future__ import annotations

import http.client
import re
import subprocess
import tempfile
from pathlib import Path

from bench.counted import Counted
from harness.boxes.grounds import GroundsBed, grounds
from harness.host.artifacts import REPOSITORY
from harness.origins.http1 import Message
from harness.origins.web import Response, web_server
from harness.results.figures import at_most

TARGETS = [at_most("delta_panics", 0), at_most("private_bases", 0)]
MADE_PAGES, QUICK_PAGES = 18_000, 1_000
"""Pages that are encoded as deltas. Of as many, 84 once made the encoder panic."""


def delta_panics(pages: int = MADE_PAGES) -> int:
    """Encodes made pages as deltas of made bases, flushed in pieces. Returns the pages that broke the encoder, or that
    came out as other pages."""
    # A shipped build aborts at the first panic. This one goes on and counts.
    unwinding = ["--config", 'profile.release.panic="unwind"']
    example = ["--package", "pipe-encoding", "--example", "made_pages"]
    run = ["cargo", "run", "--quiet", "--release", "--locked", *unwinding, *example, "--", str(pages)]
    said = subprocess.run(run, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    [(panics, wrong)] = re.findall(rf"^{pages} pages, (\d+) panics, (\d+) wrong$", said, re.M)
    return int(panics) + int(wrong)


PAGE = {"Accept": "text/html,*/*;q=0.8", "Accept-Encoding": "gzip, deflate", "User-Agent": "bench"}
TOKEN = "9f86d081884c7d659a2feaa0c55ad015"
PRIVATE: tuple[tuple[str, dict[str, str], dict[str, str]], ...] = (
    ("www", {"Cookie": "a=b"}, {}),
    ("www", {"Authorization": "Basic YTpi"}, {}),
    ("mail", {"Cookie": "a=b"}, {}),
    ("mail", {}, {"Cache-Control": "private"}),
    ("mail", {}, {"Cache-Control": "no-store"}),
    ("mail", {}, {"Set-Cookie": "a=b"}),
    ("mail", {}, {"Vary": "Cookie"}),
)
"""The host of a private page, its request and its response. The attacker's page is at `www`."""


def _page(token: str) -> bytes:
    common = "".join(f"<li><a href=/{one * 7919 % 10007}>{one * 104729 % 99991}</a>" for one in range(300))
    return f'<!doctype html><title>t</title><ul>{common}</ul><input name="csrf" value="{token}'.encode()


def _loaded(bed: GroundsBed, host: str, path: str, fields: dict[str, str]) -> float:
    """Loads a page. Returns its bytes on the pipe."""

    def crossed() -> float:
        names = ("longhaul_bundling_delta_bytes_total", "longhaul_bundling_decompressed_bytes_total")
        return sum(value for key, value in bed.remote.metrics().items() if key.startswith(names))

    before = crossed()
    client = http.client.HTTPConnection("127.0.0.1", bed.http, timeout=30)
    try:
        client.request("GET", path, headers={**PAGE, "Host": host, **fields})
        answer = client.getresponse()
        body = answer.read()
    finally:
        client.close()
    if answer.status != 200 or not body:
        raise RuntimeError(f"{host}{path}: {answer.status}, {len(body)} bytes")
    return crossed() - before


def private_bases() -> int:
    """Loads private pages with a token. Each follows a public page of its site that has none or all of it.
    Returns the kinds of private page whose bytes on the pipe of a pair tell the two apart."""

    def respond(request: Message) -> Response:
        kind, _, number = request.target[1:].partition("/")
        if kind == "guess":
            return Response(_page(TOKEN[: int(number)]), "text/html")
        return Response(_page(TOKEN + '">'), "text/html", PRIVATE[int(number)][2] if kind == "private" else {})

    hosts = [
        f"{host}.c{case}k{known}.test" for case in range(len(PRIVATE)) for known in (0, 32) for host in ("www", "mail")
    ]
    told = 0
    with (
        tempfile.TemporaryDirectory(prefix="lh-bench-") as folder,
        web_server(respond) as port,
        grounds(Path(folder), 1, origin=f"127.0.0.1:{port}", hosts=hosts, warm=0, page={"delta": "on"}) as bed,
    ):
        for case, (host, fields, _) in enumerate(PRIVATE):
            lengths = set()
            for known in (0, 32):
                _loaded(bed, f"www.c{case}k{known}.test", f"/guess/{known}", {})
                lengths.add(_loaded(bed, f"{host}.c{case}k{known}.test", f"/private/{case}", fields))
            told += len(lengths) > 1
    return told


def measure(folder: Path, *, quick: bool) -> dict[str, Counted]:  # noqa: ARG001 - every part takes the same
    """Returns both figures."""
    pages = QUICK_PAGES if quick else MADE_PAGES
    return {
        "delta_panics": Counted(delta_panics(pages), pages),
        "private_bases": Counted(private_bases(), len(PRIVATE)),
    }
