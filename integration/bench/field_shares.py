"""Figures of what one client can hold of all that clients share. `make bench ONLY=field` calls them."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import unread
from harness.artifacts import REPOSITORY
from harness.grounds import GroundsBed, grounds
from harness.processes import Child
from harness.tunnels import TunnelBed, tunnel_bed
from harness.waiting import wait_for
from harness.web import Request, Response, web_server

MADE_PAGES = 18_000
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

    def respond(request: Request) -> Response:
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


UNREAD = (4, 8, 16, 24)
"""Downloads that one client leaves unread at a time."""
LINKS = ("maritime", "geo")
"""Ship and GEO."""
REQUESTS = 10
SMALL = 20_000
"""Bytes of probes and pings in two seconds, at most."""
STANDS_S = 120
"""The time for so many unread downloads to fill every window. A ship's link carries 2 Mbit/s."""
ENDLESS = "203.0.113.202"
PROGRAM = Path(unread.__file__)


def requests_blocked(bed: TunnelBed, folder: Path, count: int) -> int:
    """Holds so many unread downloads of one client. Returns how many requests of another client fail meanwhile."""
    clients = bed.line.clients
    words = [sys.executable, "-P", "-S", "-E", PROGRAM]
    hold = [*words, "hold", ENDLESS, "80", ENDLESS, str(count)]
    log = folder / f"held-{count}.log"
    command = [str(word) for word in clients.inside(hold)]
    with log.open("w") as out, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, text=True) as holder:
        try:
            wait_for("unread downloads", lambda: "held" in log.read_text(), timeout_s=STANDS_S, interval_s=0.2)
            crossed = [-1.0]

            def stands() -> bool:
                crossed.append(sum(bed.counters("cluster_upstream_cx_rx_bytes_total").values()))
                # Probes and pings go on.
                return crossed[-1] - crossed[-2] < SMALL

            wait_for("downloads that stand", stands, timeout_s=STANDS_S, interval_s=2)
            get = [str(word) for word in clients.inside([*words, "get", ENDLESS, "80", ENDLESS, str(REQUESTS)])]
            return int(subprocess.run(get, capture_output=True, text=True, check=True).stdout)
        finally:
            holder.communicate("")


def requests_blocked_by_unread() -> int:
    """Returns the sum over ship and GEO and each number of unread downloads."""
    blocked = 0
    for profile in LINKS:
        for count in UNREAD:
            with tempfile.TemporaryDirectory(prefix="lh-bench-") as name:
                folder = Path(name)
                with tunnel_bed(folder, "pair", profile) as bed:
                    words = [sys.executable, "-P", "-S", "-E", PROGRAM, "serve", ENDLESS, "80"]
                    serve = bed.line.internet.inside(words)
                    with Child(serve, folder / "endless.log") as server:
                        server.wait_for_output("ready")
                        one = requests_blocked(bed, folder, count)
                print(f"{profile}, {count} unread: {one} of {REQUESTS} blocked", file=sys.stderr, flush=True)
                blocked += one
    return blocked


def main() -> int:
    """Prints each figure."""
    figures = {
        "delta_panics": delta_panics,
        "private_bases": private_bases,
        "requests_blocked_by_unread": requests_blocked_by_unread,
    }
    wanted = sys.argv[1:] or figures
    for name, figure in figures.items():
        if name not in wanted:
            continue
        print(f"{name}: {figure()}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
