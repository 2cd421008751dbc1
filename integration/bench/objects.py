"""`make bench ONLY=objects`: the cache in a program (`cache.engine: objects`) beside Envoy's own cache, in one run.

Processor time is that of all processes of a box. QUICK=1 takes one round, and fewer URLs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import parts
from bench.wrk import Wrk
from harness.boxes.objects_box import WWW, Load, ObjectsBox, Shelf, ask, configuration, objects_box
from harness.boxes.pep import parse_metrics
from harness.host.artifacts import need_commands
from harness.host.processes import end_with_parent
from harness.host.usage import cores, cpu_seconds
from harness.host.waiting import wait_for
from harness.results.figures import at_most, ratio

TARGETS = [
    at_most("hit_cpu_vs_before_1k", 0.9),
    at_most("hit_cpu_vs_before_11k", 0.9),
    at_most("hit_cpu_vs_before_100k", 0.9),
    at_most("hit_cpu_vs_before_1m", 1.1),
    at_most("uncacheable_vs_before", 0.8),
    at_most("first_hit_at_request", 2),
    at_most("open_files_per_100k_urls", 100),
    at_most("mib_per_100k_urls", 16),
    at_most("failed_requests_when_killed", 0),
]
QUICK = bool(os.environ.get("QUICK"))
SIZES = {"1k": 1000, "11k": 11_000, "100k": 100_000, "1m": 1_000_000}
ENGINES = ("envoy", "objects")
ROUNDS, SECONDS = (1, 1) if QUICK else (5, 2)
URLS = 5000 if QUICK else 100_000
DEATHS = 3 if QUICK else 12


def costs(folder: Path, _: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """The processor time of a hit and of an object that no cache may keep, with both engines in turns."""
    shelf = Shelf()
    paths = {size: shelf.put(f"/{size}", os.urandom(length)) for size, length in SIZES.items()}
    paths["uncacheable"] = shelf.put("/private", os.urandom(SIZES["11k"]), {"Cache-Control": "private"})
    load_on = cores()[1]
    wrk = Wrk(folder, load_on)
    microseconds: dict[str, dict[str, list[float]]] = {path: {engine: [] for engine in ENGINES} for path in paths}
    with both(folder, shelf) as boxes:
        for engine in ENGINES * ROUNDS:
            for name, path in paths.items():
                microseconds[name][engine].append(cost_us(boxes[engine], wrk, path))
    figures = {f"hit_cpu_vs_before_{size}": vs_before(microseconds[size]) for size in SIZES}
    return {**figures, "uncacheable_vs_before": vs_before(microseconds["uncacheable"])}, microseconds


def vs_before(microseconds: dict[str, list[float]]) -> float:
    """Returns the time with the program as a part of the time with Envoy's cache: the median of pairs of runs."""
    return ratio(microseconds["objects"], microseconds["envoy"])


@contextmanager
def both(folder: Path, shelf: Shelf) -> Iterator[dict[str, ObjectsBox]]:
    """Runs a box with each engine."""
    with box_of(folder, shelf, "envoy") as before, box_of(folder, shelf, "objects") as now:
        yield {"envoy": before, "objects": now}


@contextmanager
def box_of(folder: Path, shelf: Shelf, engine: str, size: str = "1gib") -> Iterator[ObjectsBox]:
    """Runs a box on one core, so that both engines have the same."""
    home = folder / engine
    home.mkdir()
    config = configuration(
        home,
        upstream={"map": {WWW: shelf.address}, "resolvers": ["127.0.0.1:53"]},
        cache={"dir": str(home / "cache"), "size": size, "engine": engine},
        workers=1,
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
    with box_of(folder, shelf, "objects", "2gib") as box:
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
    with box_of(folder, shelf, "objects") as box, Load(box.http, bodies).running() as load:
        for _death in range(DEATHS):
            box.kill_program()
            load.go_on(100)
            time.sleep(0.2)
    return {"failed_requests_when_killed": len(load.failed)}, {"requests": load.done, "failed": load.failed[:20]}


PARTS: dict[str, parts.Part] = {"costs": costs, "many": many, "killed": killed}


def ready() -> None:
    """Looks for what all parts need."""
    need_commands("wrk")
    end_with_parent()


if __name__ == "__main__":
    sys.exit(parts.main("objects", __doc__, PARTS, TARGETS, ready))
