"""The memory that 100,000 names take in a remote's CoreDNS, with an address of each family.

A client looks up the A record of each name, and then the AAAA record of each, over a link without delay. The growth is
of resident memory, from the time after the first names on. It has the garbage that Go leaves until it collects it.
"""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

from bench.names_pairs import site_of
from bench.names_queries import Pace, look_up, questions
from bench.names_remote import counted
from harness.boxes.pair import Pair
from harness.host.usage import PROC
from harness.host.waiting import wait_for
from harness.lab.init_pair import pair_of_init
from harness.lab.line import Line
from harness.lab.links import link
from harness.net.namespaces import Namespace
from harness.origins.program import Origins
from harness.results.figures import at_most

TARGETS = [at_most("mib_per_100k_names", 40)]
LINK = "leo"
NO_DELAY = {
    f"{way}.{key}": value
    for way in ("up", "down")
    for key, value in (("delay_ms", "0"), ("rate_bps", "1000000000"), ("queue_bytes", "4000000"))
}
NAMES, QUICK_NAMES = 100_000, 10_000
FIRST_NAMES = 2_000
"""Names before the measurement. They fill the buffers that do not grow with names."""
PACE = Pace(at_once=48)
"""Fewer than the streams of lookups that a remote opens."""
SETTLE_S = 10
"""The memory of this time is the least one that is seen. More time has not changed it."""
ADDRESSES = {"A": "203.0.113.10", "AAAA": "2001:db8:3::10"}


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Looks the names up, and measures before and after each type of record."""
    wanted = [f"host{number}.site{number % 7919}.example.org" for number in range(QUICK_NAMES if quick else NAMES)]
    first = [f"first{number}.example.org" for number in range(FIRST_NAMES)]
    site = site_of({})
    site.records = {name: list(ADDRESSES.values()) for name in [*first, *wanted]}
    with (
        Line(folder, LINK, seed=1, changes=NO_DELAY) as line,
        Origins(site.write(folder / "site.json"), folder, line.internet),
        pair_of_init(folder, line, link(LINK).setting) as both,
    ):
        failed = sum(look_up_all(line, both, first, kind) for kind in ADDRESSES)
        resident_kib = [settled_kib(line.near)]
        for kind in ADDRESSES:
            began_s = time.monotonic()
            failed += look_up_all(line, both, wanted, kind)
            resident_kib.append(settled_kib(line.near))
            took_s = time.monotonic() - began_s
            print(f"{len(wanted)} names, {kind}: {took_s:.0f} s, now {resident_kib[-1]} KiB", flush=True)
        taken_bytes = counted(both.remote, "coredns_remember_bytes")
    figures = figures_of(resident_kib, len(wanted))
    return figures | {"memory_lookups_failed": failed}, {
        "names": len(wanted),
        "resident memory before, with A records, with AAAA records, KiB": resident_kib,
        "bytes by the remote's own count": taken_bytes,
    }


def look_up_all(line: Line, both: Pair, names: list[str], kind: str) -> int:
    """Looks up a record of each name, and waits until the remote counts them as kept. Returns the failed lookups.
    Raises if a response is not the origin's."""
    before = kept(both)
    lookups = look_up(line.clients, questions(names, kind), PACE)
    good = [one for one in lookups if not one.failed]
    wrong = [one for one in good if one.addresses != [ADDRESSES[kind]]]
    if wrong:
        raise RuntimeError(f"{len(wrong)} lookups have another response than the origin's: {wrong[0]}")
    wait_for("the count of what is kept", lambda: kept(both) - before >= len(good), timeout_s=10, interval_s=0.5)
    return len(lookups) - len(good)


def kept(both: Pair) -> int:
    """Returns the responses that the remote has in its memory."""
    return int(counted(both.remote, "coredns_remember_answers"))


def figures_of(resident_kib: list[int], names: int) -> dict[str, float | None]:
    """Returns the growth for 100,000 names, from before to after both records of each, and to after the A records."""
    before, a_alone, both = (kib / 1024 * NAMES / names for kib in resident_kib)
    return {"mib_per_100k_names": both - before, "mib_per_100k_names_a_alone": a_alone - before}


def coredns_kib(namespace: Namespace) -> int:
    """Returns the resident memory of the CoreDNS in a namespace."""
    for folder in (PROC / str(pid) for pid in namespace.processes()):
        if (folder / "comm").read_text().strip() == "coredns":
            resident_pages = int((folder / "statm").read_text().split()[1])
            return resident_pages * resource.getpagesize() // 1024
    raise RuntimeError("there is no CoreDNS")


def settled_kib(namespace: Namespace) -> int:
    """Returns the least memory of some seconds."""
    until_s = time.monotonic() + SETTLE_S
    least_kib = coredns_kib(namespace)
    while time.monotonic() < until_s:
        time.sleep(1)
        least_kib = min(least_kib, coredns_kib(namespace))
    return least_kib
