"""The memory that learning takes in a ground's CoreDNS: 100,000 followers, and a flood of a million random names.

CoreDNS runs with the plugins of a ground, without Envoy (`names_pushed_ground`), and the bench plays the clients of a
remote. Ten names of a site follow each other, which makes 45 pairs, and each site has a client of its own. The growth
is of resident memory, with the garbage that Go leaves until it collects it. Before it, lookups without a client fill
the cache. The flood comes from one client, to a CoreDNS that has just started.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.names_memory import SETTLE_S
from bench.names_pushed_ground import Ground, query
from harness.results.figures import at_most

TARGETS = [at_most("mib_per_100k_followers", 30)]
NAMES_OF_A_SITE = 10
PAIRS_OF_A_SITE = NAMES_OF_A_SITE * (NAMES_OF_A_SITE - 1) // 2
FOLLOWERS, QUICK_FOLLOWERS = 100_000, 20_000
FLOOD, QUICK_FLOOD = 1_000_000, 100_000
OTHER_NAMES = 30_000
"""More than the cache holds."""
SIZE_BYTES = 24 << 20
"""The limit of the plugin for what it learns."""
FLOODER = 7


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Teaches followers, and floods another ground."""
    homes = [folder / name for name in ("followers", "flood")]
    for home in homes:
        home.mkdir()
    sites = (QUICK_FOLLOWERS if quick else FOLLOWERS) // PAIRS_OF_A_SITE + 1
    taught_kib, known = growth_kib(homes[0], visits(sites))
    flood_kib, flooded = growth_kib(homes[1], flood(QUICK_FLOOD if quick else FLOOD))
    if known["followers"] < PAIRS_OF_A_SITE * sites * 0.99:
        raise RuntimeError(f"the ground learned {known['followers']:.0f} of {PAIRS_OF_A_SITE * sites} followers")
    if flooded["memory_bytes"] > 1.01 * SIZE_BYTES:
        raise RuntimeError(f"a flood took {flooded['memory_bytes']:.0f} bytes of {SIZE_BYTES}")
    return {
        "mib_per_100k_followers": taught_kib / 1024 * 100_000 / known["followers"],
        "push_flood_mib": flood_kib / 1024,
    }, {"after teaching": known, "after the flood": flooded}


def growth_kib(home: Path, queries: Iterator[bytes]) -> tuple[int, dict[str, float]]:
    """Sends queries to a new ground. Returns the growth of its memory, and what it says that it knows."""
    with Ground(home) as ground, ground.stream():
        lost = ground.ask(query(number, f"other{number}.example.com") for number in range(OTHER_NAMES))
        before_kib, began_s = settled_kib(ground), time.monotonic()
        lost += ground.ask(queries)
        took_s = time.monotonic() - began_s
        after_kib = settled_kib(ground)
        metrics = ground.metrics()
    known = {key: metrics[f"coredns_push_{key}"] for key in ("names", "followers", "memory_bytes")}
    print(f"{took_s:.0f} s, {lost} lost, from {before_kib} to {after_kib} KiB, {known}", flush=True)
    return after_kib - before_kib, known


def visits(sites: int) -> Iterator[bytes]:
    """Yields the queries of visits, each by a client of its own."""
    for site in range(sites):
        for number in range(NAMES_OF_A_SITE):
            yield query(site * NAMES_OF_A_SITE + number, f"host{number}.site{site}.example.org", site)


def flood(names: int) -> Iterator[bytes]:
    """Yields queries of one client for random names."""
    words = random.Random(1)
    for number in range(names):
        yield query(number, f"{words.getrandbits(64):016x}.example.net", FLOODER)


def settled_kib(ground: Ground) -> int:
    """Returns the least memory of some seconds."""
    until_s = time.monotonic() + SETTLE_S
    least_kib = ground.resident_kib
    while time.monotonic() < until_s:
        time.sleep(1)
        least_kib = min(least_kib, ground.resident_kib)
    return least_kib
