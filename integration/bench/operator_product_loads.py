"""The clients of `make bench ONLY=operator-product`: they visit names that nobody has visited, over http and https."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench.operator_product_bed import HOSTS, Bed
from harness.clients.commands import Curl

LARGE_BYTES = 5_000_000
_visits = itertools.count()


@dataclass(frozen=True)
class Load:
    """The habits of clients on a day without a fault."""

    name: str
    habits: dict[str, Any]


HEALTHY = (
    Load("a client", {"clients": 1}),
    Load("a few clients", {"clients": 4}),
    Load("many clients", {"clients": 8, "pause_s": 0.5}),
    Load("clients that pause", {"clients": 3, "pause_s": 3.0}),
    Load("clients that upload", {"clients": 2, "upload_bytes": 30_000}),
)


@contextmanager
def surfing(
    bed: Bed,
    *,
    clients: int = 4,
    pause_s: float = 0.2,
    wait_ms: int = 0,
    greedy: int = 0,
    upload_bytes: int = 0,
) -> Iterator[None]:
    """Clients visit new names. Origins wait for `wait_ms` before each response over http. `greedy` clients download
    without an end."""
    over = threading.Event()
    threads = [
        threading.Thread(target=_visit, args=(bed, over, pause_s, wait_ms, upload_bytes)) for _ in range(clients)
    ]
    threads += [threading.Thread(target=_download, args=(bed, over)) for _ in range(greedy)]
    if bed.wlan:
        threads.append(threading.Thread(target=_visit, args=(bed, over, pause_s, wait_ms, 0, True)))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _visit(bed: Bed, over: threading.Event, pause_s: float, wait_ms: int, upload_bytes: int, far: bool = False) -> None:
    curl = Curl(bed.folder, bed.wlan if far else bed.line.clients, "--cacert", str(bed.authority.files.cert))
    while not over.wait(pause_s):
        number = next(_visits)
        host = f"h{number % HOSTS}.example.org"
        if upload_bytes and number % 4 == 0:
            body = bed.folder / f"upload-{number}"
            body.write_bytes(bytes(upload_bytes))
            curl.get(f"http://{host}/_/echo", "--data-binary", f"@{body}")
            body.unlink()
            continue
        scheme = "https" if number % 2 else "http"
        curl.get(f"{scheme}://{host}/_/answer?body=noise&size={20_000 + number}&wait={wait_ms}")


def _download(bed: Bed, over: threading.Event) -> None:
    curl = Curl(bed.folder, bed.line.clients, "--cacert", str(bed.authority.files.cert), "--insecure")
    for number in itertools.count():
        if over.is_set():
            return
        host = f"h{number % HOSTS}.example.org"
        curl.get(f"https://{host}/_/answer?body=page&size={LARGE_BYTES}", timeout_s=60)
