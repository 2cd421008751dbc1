"""Small requests of one client while another client holds downloads that it does not read, on a pair."""

from __future__ import annotations

import itertools
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from bench.counted import Counted, count, together
from harness.clients.commands import Curl
from harness.lab.boxes import OTHER_CLIENT, Boxes, pair_of_boxes
from harness.net.authority import Authority
from harness.net.link import Link
from harness.net.sockets import connected
from harness.origins.program import Origins, Site
from harness.results.figures import at_most

TARGETS = [at_most("requests_blocked_by_unread", 0)]
LINKS = ("maritime", "geo")
UNREAD, SCHEMES = (4, 8, 16, 24), ("http", "https")
HOST, ADDRESS = "files.example.org", "203.0.113.204"
BODY_BYTES = 16_000_000
"""More than all buffers between the origin and a client that does not read."""
DOWNLOAD = f"/_/answer?size={BODY_BYTES}&type=application/octet-stream&header=cache-control:no-store"
READ_BYTES = 20_000
REQUESTS = 10
TIMEOUT_S = 20.0
STILL_S, SETTLE_S = 2.0, 40.0
"""Requests begin once the link has been still for so long, or at the latest after so long."""
_numbers = itertools.count(1)


def measure(folder: Path, *, quick: bool) -> dict[str, Counted]:
    """Counts requests that do not succeed within `TIMEOUT_S`. Half of them are http, and half https."""
    cases = [("geo", 8, "http")] if quick else list(itertools.product(LINKS, UNREAD, SCHEMES))
    with ThreadPoolExecutor(2) as pool:
        return {"requests_blocked_by_unread": together(pool.map(lambda case: _of(folder, *case), cases))}


def _of(folder: Path, profile: str, unread: int, scheme: str) -> Counted:
    """Runs one case on a pair of its own. Streams that the case before still held would count, too."""
    (home := folder / f"{profile}-{unread}-{scheme}").mkdir(mode=0o755)
    with standing(home, profile) as box, held(box, unread, scheme):
        return count(requests(box, f"{profile}, {unread} unread over {scheme}"))


@contextmanager
def standing(folder: Path, profile: str) -> Iterator[Boxes]:
    """Runs a pair with an origin that makes responses to order."""
    authority = Authority(folder)
    host = {"address": ADDRESS, "special": True, "generate": True}
    site = Site(https_port=443, ca=authority.files.as_dict(), hosts={HOST: host})
    (home := folder / "origin").mkdir()
    with (
        pair_of_boxes(folder, {HOST: ADDRESS}, ["nobody.example.com"], profile=profile, authority=authority) as box,
        Origins(site.write(home / "site.json"), home, box.internet),
    ):
        yield box


@contextmanager
def held(box: Boxes, downloads: int, scheme: str) -> Iterator[None]:
    """Opens downloads of one client, and reads `READ_BYTES` of each. Continues once the link is still."""
    context = ssl.create_default_context(cafile=str(box.authority.files.cert))

    with ExitStack() as stack:

        def hold(_: int) -> bool:
            # On a link that is full, the later ones may get nothing.
            with suppress(OSError):
                port = 443 if scheme == "https" else 80
                connection = connected(box.clients, ADDRESS, port, receive_bytes=16384, timeout_s=SETTLE_S)
                stack.callback(connection.close)
                if scheme == "https":
                    connection = stack.enter_context(context.wrap_socket(connection, server_hostname=HOST))
                connection.sendall(f"GET {DOWNLOAD} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
                got = 0
                while got < READ_BYTES and (piece := connection.recv(4096)):
                    got += len(piece)
                return got >= READ_BYTES
            return False

        with ThreadPoolExecutor(downloads) as pool:
            began = sum(pool.map(hold, range(downloads)))
        if began < downloads / 2:
            raise RuntimeError(f"only {began} of {downloads} downloads began, so the figure would say nothing")
        assert box.link
        settle(box.link)
        yield


def settle(link: Link) -> None:
    """Waits until nothing but small packets crosses."""
    deadline = time.monotonic() + SETTLE_S
    seen, since = -1, time.monotonic()
    while time.monotonic() < deadline and time.monotonic() - since < STILL_S:
        crossed = link.statistics()["down"]["offered"]["bytes"] // 100_000
        if crossed != seen:
            seen, since = crossed, time.monotonic()
        time.sleep(0.1)


def requests(box: Boxes, name: str) -> Iterator[tuple[str, str]]:
    """Sends all requests of the other client at the same time."""
    known = [part for port in (80, 443) for part in ("--resolve", f"{HOST}:{port}:{ADDRESS}")]
    options = ("--cacert", str(box.authority.files.cert), "--interface", OTHER_CLIENT)
    client = Curl(box.folder, box.clients, *known, *options)

    def one(number: int) -> tuple[str, str]:
        scheme = SCHEMES[number % 2]
        answer = client.get(f"{scheme}://{HOST}/small-{next(_numbers)}.json", timeout_s=TIMEOUT_S)
        problem = "" if (answer.status, answer.problem) == (200, "") else f"{answer.status} {answer.problem}"
        return f"{name}, {scheme} request {number}", problem

    with ThreadPoolExecutor(REQUESTS) as pool:
        yield from pool.map(one, range(REQUESTS))
