"""Pairs in numbers, on loopback: what clients lose when a ground goes away, and what a remote costs a ground.

The figures count requests, drained chains and bytes of heap. None of them is a time, so a busy machine does not change
them.
"""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "integration"))
RESULTS = REPOSITORY / "target/bench/fleet-pair.json"

from harness.boxes.grounds import REMOTES, SHIP, WWW, GroundBox, GroundsBed, grounds  # noqa: E402
from harness.boxes.pair import BYTES_ALPN, tls_of_remote  # noqa: E402
from harness.host.waiting import wait_for  # noqa: E402
from harness.net.authority import KeyFiles, issue_as_written  # noqa: E402 - the path is set above
from harness.results.figures import at_least, at_most, verdicts, write  # noqa: E402

REMOVED_AFTER_S = 35.0
CONNECTIONS = 400
STORES = 200
OBJECTS = 10
"""Pairs of an image and a script in the page that the remotes load."""
SLOTS = 8
"""A remote's requests for the objects of a page."""
TARGETS = (
    at_most("ground_failover_failed_gets", 0),
    at_most("removed_ground_requests_after_35s", 0),
    at_most("remotes_drained_by_new_remote", 0),
    at_most("kib_per_pair_connection", 60),
    at_least("known_object_share_200_remotes", 0.95),
)


def failed_when_it_dies(bed: GroundsBed) -> int:
    """Kills the first ground under load, and starts it again. Returns the number of failed GETs."""
    load = bed.load("kill")
    load.until(100)
    bed.grounds[0].kill()
    load.until(300)
    bed.grounds[0].pep.__enter__()
    load.until(100)
    load.stop()
    print(f"{load.mark}: {load.done} GETs, {len(load.failures)} failed {load.failures[:3]}, {load.cut} cut")
    return len(load.failures)


def failed_when_it_stops(bed: GroundsBed) -> int:
    """Stops the first ground under load. Returns the number of failed GETs."""
    load = bed.load("term")
    load.until(100)
    bed.grounds[0].pep.child.stop()
    load.until(300)
    load.stop()
    print(f"{load.mark}: {load.done} GETs, {len(load.failures)} failed {load.failures[:3]}, {load.cut} cut")
    return len(load.failures)


def when_removed(bed: GroundsBed) -> tuple[int, int]:
    """Takes the first ground out of DNS under load. Returns the number of failed GETs, and that of requests which the
    ground got later than 35 s after that."""
    first = bed.grounds[0]
    load = bed.load("before", threads=2)
    load.until(60)
    wait_for("requests at the first ground", lambda: first.served("before") > 0)
    bed.named[:] = [box.address for box in bed.grounds[1:]]
    began = time.monotonic()
    while time.monotonic() < began + REMOVED_AFTER_S:
        load.until(5)
    load.stop()
    later = bed.load("later", threads=4)
    later.until(100)
    later.stop()
    wait_for("the log of the second ground", lambda: bed.grounds[1].served("later") >= 100)
    failures = load.failures + later.failures
    print(f"removal: {load.done + later.done} GETs, {len(failures)} failed {failures[:3]}")
    return len(failures), first.served("later")


def drained_by_a_new_remote(bed: GroundsBed, folder: Path) -> int:
    """Adds a remote to the file of the first ground. Returns the number of chains and pipes that this ends."""
    first = bed.grounds[0]
    new = issue_as_written(folder / "new", bed.authority.files, "new.test")
    pipes, draining = first.connections(), first.draining()
    (first.config.parent / REMOTES).write_text(f"{SHIP}\nnew.test\n")
    wait_for("the new remote accepted", lambda: first.accepts(new))
    time.sleep(1)
    return int(max(0, pipes - first.connections())) + int(first.draining() != draining)


def kib_per_connection(box: GroundBox, shown: KeyFiles) -> float:
    """Opens connections for clients' bytes, as a remote does in advance. Returns the heap of each in KiB."""

    def heap() -> float:
        return int(json.loads(box.pep.admin("/memory"))["allocated"]) / 1024

    context = tls_of_remote(shown, BYTES_ALPN)
    with ExitStack() as stack:
        before = heap()
        for _ in range(CONNECTIONS):
            plain = stack.enter_context(socket.create_connection((box.address, box.port), timeout=30))
            stack.enter_context(context.wrap_socket(plain))
        time.sleep(1)
        return (heap() - before) / CONNECTIONS


def known_object_share(box: GroundBox, shown: KeyFiles) -> float:
    """Loads one page twice at each of `STORES` simulated remotes. Returns the share of the objects of the second loads
    that the ground names instead of sending them again."""

    def sent() -> dict[str, float]:
        metrics = box.pep.metrics()
        names = ("objects", "references")
        return {name: metrics.get(f"longhaul_bundling_{name}_total{{}}", 0.0) for name in names}

    def visit(store: str) -> None:
        flight, at = secrets.token_hex(16), f"https://{box.address}:{box.port}"
        made = f"{at}/_/answer?body=page&{'&'.join(['host=' + WWW] * OBJECTS)}"
        same = ["--silent", "--http2", "--insecure", "--cert", str(shown.cert), "--key", str(shown.key),
                "--max-time", "60", "--output", "/dev/null"]  # fmt: skip
        page = ["--header", f"Host: {WWW}", "--header", "Accept: text/html", "--header", "Accept-Encoding: gzip",
                "--header", f"x-longhaul-flight: {flight};{store};00000000", made]  # fmt: skip
        slot = ["--next", *same, "--header", "Host: bundle.pair.invalid", f"{at}/{flight}"]
        subprocess.run(["curl", *same, *page, *(slot * SLOTS)], check=True)

    stores = [secrets.token_hex(8) for _ in range(STORES)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(visit, stores))
        before = sent()
        list(pool.map(visit, stores))
    again = {name: value - before[name] for name, value in sent().items()}
    print(f"{STORES} remotes: {before} for the first loads, {again} for the second ones")
    return again["references"] / max(1.0, sum(again.values()))


def measure(folder: Path) -> dict[str, float | None]:
    """Returns all figures."""
    listed, named = folder / "listed", folder / "named"
    listed.mkdir()
    named.mkdir()
    with grounds(listed) as bed:
        drained = drained_by_a_new_remote(bed, folder)
        own = issue_as_written(folder / "own", bed.authority.files, SHIP)
        kib = kib_per_connection(bed.grounds[1], own)
        known = known_object_share(bed.grounds[1], own)
        failed = failed_when_it_dies(bed) + failed_when_it_stops(bed)
    with grounds(named, by_name=True) as bed:
        failed_in_dns, after = when_removed(bed)
    return {
        "ground_failover_failed_gets": failed + failed_in_dns,
        "removed_ground_requests_after_35s": after,
        "remotes_drained_by_new_remote": drained,
        "kib_per_pair_connection": kib,
        "known_object_share_200_remotes": known,
    }


def main() -> int:
    """Measures, prints and writes the figures."""
    with tempfile.TemporaryDirectory(prefix="longhaul-fleet-") as name:
        figures = measure(Path(name))
    print(verdicts(figures, TARGETS))
    write(RESULTS, figures, TARGETS, connections=CONNECTIONS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
