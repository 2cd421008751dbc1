"""`make bench ONLY=objects`: the cache of objects beside an edge without a cache, in one run.

The figures of processor time without an end are for native filters. Those with `_wasm` have no targets.

Processor time is that of all processes of a box. QUICK=1 takes one round, and fewer URLs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import parts
from bench.wrk import Wrk
from harness.boxes.objects_box import (
    WWW,
    Load,
    ObjectsBox,
    Shelf,
    ask,
    configuration,
    first_byte_ms,
    objects_box,
    update,
)
from harness.boxes.pep import parse_metrics
from harness.host.artifacts import need_commands
from harness.host.processes import end_with_parent
from harness.host.usage import cores, cpu_seconds
from harness.host.waiting import wait_for
from harness.results.figures import at_most, ratio

TARGETS = [
    at_most("hit_cpu_vs_no_cache_1k", 0.9),
    at_most("hit_cpu_vs_no_cache_11k", 0.9),
    at_most("hit_cpu_vs_no_cache_100k", 0.9),
    at_most("hit_cpu_vs_no_cache_1m", 1.1),
    at_most("uncacheable_vs_no_cache", 1.1),
    at_most("first_hit_at_request", 2),
    at_most("open_files_per_100k_urls", 100),
    at_most("mib_per_100k_urls", 16),
    at_most("failed_requests_when_killed", 0),
    at_most("slice_bytes_vs_one_copy", 1.05),
    at_most("slice_first_byte_ms", 20),
]
QUICK = bool(os.environ.get("QUICK"))
SIZES = {"1k": 1000, "11k": 11_000, "100k": 100_000, "1m": 1_000_000}
CACHES = ("off", "objects")
FILTERS = {"native": "", "wasm": "_wasm"}
"""The engines of the filters, and the ends of their figures' names. With native ones, Envoy reads the store itself."""
ROUNDS, SECONDS = (1, 1) if QUICK else (5, 2)
URLS = 5000 if QUICK else 100_000
DEATHS = 3 if QUICK else 12
CLIENTS, PARTS_OF_ONE, PART_BYTES = 20, 8 if QUICK else 64, 1 << 20


def costs(folder: Path, _: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """The processor time of a hit and of an object that no cache may keep, with and without the cache in turns."""
    shelf = Shelf()
    paths = {size: shelf.put(f"/{size}", os.urandom(length)) for size, length in SIZES.items()}
    paths["uncacheable"] = shelf.put("/private", os.urandom(SIZES["11k"]), {"Cache-Control": "private"})
    wrk = Wrk(folder, cores()[1])
    figures: parts.Figures = {}
    measured: dict[str, Any] = {}
    for filters, end in FILTERS.items():
        home = folder / filters
        home.mkdir()
        microseconds: dict[str, dict[str, list[float]]] = {path: {cache: [] for cache in CACHES} for path in paths}
        with both(home, shelf, filters) as boxes:
            for cache in CACHES * ROUNDS:
                for name, path in paths.items():
                    microseconds[name][cache].append(cost_us(boxes[cache], wrk, path))
        for name, times in microseconds.items():
            figure = f"hit_cpu_vs_no_cache_{name}" if name in SIZES else f"{name}_vs_no_cache"
            figures[figure + end] = ratio(times["objects"], times["off"])
        measured[filters] = microseconds
    return figures, measured


@contextmanager
def both(folder: Path, shelf: Shelf, filters: str) -> Iterator[dict[str, ObjectsBox]]:
    """Runs a box without a cache and one with it. `filters` is the engine of the filters."""
    with (
        box_of(folder, shelf, None, filters) as without,
        box_of(folder, shelf, "1gib", filters) as cached,
    ):
        yield {"off": without, "objects": cached}


@contextmanager
def box_of(folder: Path, shelf: Shelf, size: str | None, filters: str = "wasm") -> Iterator[ObjectsBox]:
    """Runs a box on one core, so that both have the same. `size` is that of its cache, if it has one."""
    home = folder / ("objects" if size else "off")
    home.mkdir()
    config = configuration(
        home,
        upstream={"map": {WWW: shelf.address}, "resolvers": ["127.0.0.1:53"]},
        cache={"dir": str(home / "cache"), "size": size} if size else "off",
        workers=1,
        engine=filters,
    )
    with objects_box(home, config) as box:
        yield box


def cost_us(box: ObjectsBox, wrk: Wrk, path: str) -> float:
    """Returns the processor time of a request in microseconds, once the object is where it will be."""
    for _ in range(4):
        box.get(path)
    session = box.pep.child.process.pid
    before = cpu_seconds(session)
    load = wrk.run(box.http, WWW, path, SECONDS)
    return (cpu_seconds(session) - before) / load.requests * 1e6


def many(folder: Path, _: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """The memory and the open files of the program with many URLs, and the request that is the first hit."""
    shelf = Shelf()
    body = os.urandom(1000)
    paths = [shelf.put(f"/{hashlib.sha256(str(number).encode()).hexdigest()}", body) for number in range(URLS)]
    with box_of(folder, shelf, "2gib") as box:
        first_hit = next(number for number in range(1, 6) if box.get(paths[0]).get("age") is not None)
        before = memory_mib(box)
        for path in paths:
            assert ask(box.http, path).body == body
        wait_for("the last object", lambda: count(box, "entries") >= URLS)
        # The memory of small objects has a bound of its own, and is not counted.
        hot_mib = count(box, "hot_bytes") / 2**20
        grown = max(0.0, memory_mib(box) - before - hot_mib)
        files = len(list(Path(f"/proc/{box.child()['pid']}/fd").iterdir()))
    share = 100_000 / URLS
    figures: parts.Figures = {
        "first_hit_at_request": first_hit,
        "mib_per_100k_urls": grown * share,
        "open_files_per_100k_urls": files,
    }
    return figures, {"urls": URLS, "hot_mib": hot_mib}


def count(box: ObjectsBox, name: str) -> float:
    """Returns a figure of the program."""
    page = box.pep.page(f"http://{box.config['listen']['metrics']}/metrics")
    return parse_metrics(page)[f"longhaul_objects_{name}"]


def memory_mib(box: ObjectsBox) -> float:
    """Returns the resident memory of the program."""
    status = Path(f"/proc/{box.child()['pid']}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1]) / 1024


def killed(folder: Path, _: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Requests that fail while the program is killed again and again."""
    shelf = Shelf()
    bodies = {shelf.put(f"/{number}", body): body for number, body in enumerate(os.urandom(11_000) for _ in range(20))}
    with box_of(folder, shelf, "1gib") as box, Load(box.http, bodies).running() as load:
        for _death in range(DEATHS):
            box.kill_program()
            load.go_on(100)
            time.sleep(0.2)
    return {"failed_requests_when_killed": len(load.failed)}, {"requests": load.done, "failed": load.failed[:20]}


def ranges(folder: Path, _: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Clients of an edge that download one large object in step, by ranges of 1 MiB."""
    shelf, body = Shelf(), os.urandom(PARTS_OF_ONE * PART_BYTES)
    path = shelf.put_in_parts("/large", body)
    with box_of(folder, shelf, "1gib") as box:
        on_the_way = update(box.http, path, body, CLIENTS)
        # The bytes are there now.
        begun = [first_byte_ms(box.http, path, 0, body[:PART_BYTES]) for _ in range(CLIENTS)]
    figures: parts.Figures = {
        "slice_bytes_vs_one_copy": shelf.sent_in_parts / len(body),
        "slice_first_byte_ms": statistics.median(begun),
    }
    return figures, {"first_byte_ms_on_the_way": statistics.median(on_the_way), "clients": CLIENTS}


PARTS: dict[str, parts.Part] = {"costs": costs, "many": many, "killed": killed, "ranges": ranges}


def ready() -> None:
    """Looks for what all parts need."""
    need_commands("wrk")
    end_with_parent()


if __name__ == "__main__":
    sys.exit(parts.main("objects", __doc__, PARTS, TARGETS, ready))
