"""Programs that download one object through a remote with a cache: many at once, again the next day, and one whose
download is interrupted.

The pair is on loopback. The bytes of the link are those that cross the relay between its ends, with those of TLS.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.boxes.objects_box import WWW, ObjectsPair, Shelf, objects_pair, update
from harness.host.waiting import wait_for
from harness.net.relay import Relay
from harness.results.figures import at_most

MIB = 1 << 20
PROGRAM = "Microsoft-Delivery-Optimization/10.1"
"""The `User-Agent` of a system that updates itself."""
CLIENTS = 20
UPDATE_BYTES, QUICK_UPDATE_BYTES = 32 * MIB, 4 * MIB
UPDATE_BPS = 1_000_000_000
LIFETIME_S = 5
"""The object is fresh for so long. It is stale the next day."""

DOWNLOAD_BYTES, QUICK_DOWNLOAD_BYTES = 24 * MIB, 8 * MIB
DOWNLOAD_BPS = 40_000_000
SHORT_OUTAGE_S, LONG_OUTAGE_S = 4, 30
"""The cache requests a missing rest for about 10 s. Then it breaks off its response, too."""
AGAIN_S = 0.2
"""A client whose download breaks off requests the rest after this time."""
LONGEST_S = 120

TARGETS = [
    at_most("update_link_bytes_vs_one", 1.1),
    at_most("next_day_link_bytes_vs_one", 0.01),
    at_most("resumed_bytes_lost", 0),
]


def updates(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Clients that download an object in step by ranges of 1 MiB, and do so again after a restart of the remote, when
    the object is stale."""
    shelf, body = Shelf(), os.urandom(QUICK_UPDATE_BYTES if quick else UPDATE_BYTES)
    path = shelf.put_in_parts("/update", body, {"Cache-Control": f"max-age={LIFETIME_S}"})
    crossed = {}
    with objects_pair(folder, {WWW: shelf.address}, cached=True, bits_per_s=UPDATE_BPS) as pair:
        for day in ("update", "next_day"):
            before = link_of(pair).crossed
            update(pair.http, path, body, CLIENTS, User_Agent=PROGRAM)
            crossed[day] = link_of(pair).crossed - before
            restart(pair)
            time.sleep(LIFETIME_S)
    shelf.origin.close()
    figures: dict[str, float | None] = {f"{day}_link_bytes_vs_one": size / len(body) for day, size in crossed.items()}
    return figures, {"clients": CLIENTS, "bytes": len(body), "crossed": crossed}


def link_of(pair: ObjectsPair) -> Relay:
    """Returns the link of a pair that has one."""
    assert pair.link
    return pair.link


def resumed(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Downloads that are interrupted in the middle, each by another fault. The client requests the rest until it
    has it, and another client downloads the object after it.

    Bytes beyond one client's download without a fault are lost, but for the block of 1 MiB that the fault left
    incomplete.
    """
    size = QUICK_DOWNLOAD_BYTES if quick else DOWNLOAD_BYTES
    shelf, found = Shelf(), {}
    with objects_pair(folder, {WWW: shelf.address}, cached=True, bits_per_s=DOWNLOAD_BPS) as pair:
        for name, fault in FAULTS.items():
            body = os.urandom(size)
            path = shelf.put_in_parts(f"/{name}", body)
            found[name] = measured(pair, path, body, fault)
            print(f"{name}: {found[name]}", flush=True)
    shelf.origin.close()
    one_copy = found["none"]["crossed"] - found["none"]["by_second"]
    for one in found.values():
        one["lost"] = max(0, one["crossed"] - one_copy - MIB)
    return {"resumed_bytes_lost": sum(one["lost"] for one in found.values())}, found


def measured(pair: ObjectsPair, path: str, body: bytes, fault: Callable[[ObjectsPair], None]) -> dict[str, int]:
    """Lets a client download an object with a fault in the middle, and then another client without any. Returns bytes
    on the link: of both clients, before the fault, and of the second client. `requests` are those of the first one."""
    link, first = link_of(pair), Download(pair.http, path)
    before = link.crossed
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(first.run, len(body))
        wait_for("half of the object", lambda: len(first.got) >= len(body) // 2, LONGEST_S)
        at_fault = link.crossed - before
        fault(pair)
        done.result()
    again = link.crossed
    second = Download(pair.http, path)
    second.run(len(body))
    if first.got != body or second.got != body:
        raise RuntimeError(f"{path}: a client has other bytes")
    return {
        "crossed": link.crossed - before,
        "before_fault": at_fault,
        "by_second": link.crossed - again,
        "requests": first.requests,
    }


@dataclass
class Download:
    """A program that downloads an object, and requests the rest where the download breaks off."""

    port: int
    path: str
    got: bytearray = field(default_factory=bytearray)
    requests: int = 0

    def run(self, size: int) -> None:
        """Returns once the client has so many bytes."""
        deadline = time.monotonic() + LONGEST_S
        while len(self.got) < size:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.path}: {len(self.got)} of {size} bytes after {self.requests} requests")
            self.requests += 1
            with suppress(OSError, http.client.HTTPException):
                self._ask()
            if len(self.got) < size:
                time.sleep(AGAIN_S)

    def _ask(self) -> None:
        fields = {"Host": WWW, "User-Agent": PROGRAM}
        if self.got:
            fields |= {"Range": f"bytes={len(self.got)}-", "If-Range": '"1"'}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request("GET", self.path, headers=fields)
            response = connection.getresponse()
            if response.status != (206 if self.got else 200):
                return
            while piece := response.read1():
                self.got += piece


def restart(pair: ObjectsPair) -> None:
    """Stops the remote in order, and starts it again."""
    pair.remote.pep.child.stop()
    # The context that started the pair stops this one.
    pair.remote.pep.__enter__()
    wait_for_pipe(pair)


def lose_power(pair: ObjectsPair) -> None:
    """Kills the remote, and starts it again."""
    child = pair.remote.pep.child
    os.kill(child.process.pid, signal.SIGKILL)
    child.process.wait()
    wait_for("the end of the remote", lambda: not listens(pair.http))
    pair.remote.pep.__enter__()
    wait_for_pipe(pair)


def wait_for_pipe(pair: ObjectsPair) -> None:
    """Waits until the remote has reached the ground."""
    active = 'envoy_cluster_upstream_cx_active{envoy_cluster_name="pipe"}'
    wait_for("the pipe", lambda: pair.remote.pep.metrics().get(active, 0) >= 1, 60, 0.2)


def listens(port: int) -> bool:
    """Returns true if something listens on a port of loopback."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def away(seconds: float) -> Callable[[ObjectsPair], None]:
    """Returns a fault: the link is away for so long."""

    def fault(pair: ObjectsPair) -> None:
        with link_of(pair).away():
            time.sleep(seconds)

    return fault


FAULTS: dict[str, Callable[[ObjectsPair], None]] = {
    "none": lambda _: None,
    "short_outage": away(SHORT_OUTAGE_S),
    "long_outage": away(LONG_OUTAGE_S),
    "program_killed": lambda pair: pair.remote.kill_program(),
    "power_lost": lose_power,
}
"""The faults in the middle of a download."""
