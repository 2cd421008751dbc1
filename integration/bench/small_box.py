"""`make bench ONLY=small-box`: what boxes of one core use while no client is there. Writes target/bench/small-box.json.

The bytes of an hour are those of two periods of the longest interval, extrapolated. QUICK=1 leaves out the probes of a
ground on a metered link, every 30 minutes. The bench needs root, because the bed consists of network namespaces.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import parts
from harness.boxes.desk import desk_in
from harness.boxes.pair import Ends, Pair, pair
from harness.boxes.pep import Pep
from harness.host.artifacts import need_root
from harness.host.processes import end_with_parent
from harness.host.usage import cpu_seconds, resident_kib
from harness.lab import links
from harness.lab.line import FAR, NEAR_HOME, Line
from harness.net.topology import RESOLVER
from harness.origins.program import Origins, Site
from harness.results.figures import at_most

TARGETS = [
    at_most("metered_idle_hour_kb", 60),
    at_most("remote_rss_mib", 160),
]
LINK = "geo"
QUICK = bool(os.environ.get("QUICK"))
HOUR_S = 3600
SAMPLE_S = {"free": 250, "metered": 480 if QUICK else HOUR_S}
SETTLE_S = 30
"""The connections of the pools are open long before."""


def free(folder: Path, _: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """A pair over a link without a price."""
    return idle_pair(folder, "free"), {"sample_s": SAMPLE_S["free"]}


def metered(folder: Path, _: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """A pair over a link with a price for each byte."""
    return idle_pair(folder, "metered"), {"sample_s": SAMPLE_S["metered"]}


def edge(folder: Path, _: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """One box."""
    return idle_edge(folder), {"sample_s": SETTLE_S}


PARTS: dict[str, parts.Part] = {"free": free, "metered": metered, "edge": edge}


def ready() -> None:
    """Looks for what all parts need, and leaves one core for everything, also for those who count the cores."""
    need_root()
    end_with_parent()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])


def idle_pair(folder: Path, price: str) -> dict[str, float | None]:
    """Lets a pair stand without clients. Returns its bytes on the link, in both directions and with the headers of IP
    and TCP, and what its ends use."""
    setting = {**links.link(LINK).setting, "price": price}
    resolver = Site(dns=[f"{RESOLVER}:53"])
    with (
        Line(folder, LINK, seed=1) as line,
        Origins(resolver.write(folder / "site.json"), folder, line.internet),
        pair(folder, Ends(line.near, NEAR_HOME, line.gateway, FAR), setting, steered=["example.org"]) as both,
    ):
        figures = start_costs(both) if price == "free" else {}
        both.until_piped()
        time.sleep(SETTLE_S)
        assert line.link
        line.link.reset()
        time.sleep(SAMPLE_S[price])
        seen = line.link.statistics()
        carried = sum(seen[way]["carried"]["bytes"] for way in ("up", "down"))
        figures[f"{price}_idle_hour_kb"] = carried / 1000 * HOUR_S / seen["elapsed_s"]
        memory = {"remote": rss_mib(both.remote), "ground": rss_mib(both.ground)}
        if price == "free":
            figures |= {f"{end}_rss_mib": mib for end, mib in memory.items()}
        elif SAMPLE_S[price] == HOUR_S:
            figures |= {f"{end}_rss_after_hour_mib": mib for end, mib in memory.items()}
    return figures


def start_costs(both: Pair) -> dict[str, float | None]:
    """Returns the processor time of both ends until they print `ready`."""
    ends = {"remote": both.remote, "ground": both.ground}
    return {f"{name}_cpu_s_to_start": cpu_seconds(end.child.process.pid) for name, end in ends.items()}


def idle_edge(folder: Path) -> dict[str, float | None]:
    """Returns what an edge uses without clients."""
    with desk_in(folder) as desk, Pep(desk.write(), folder) as pep:
        used = cpu_seconds(pep.child.process.pid)
        time.sleep(SETTLE_S)
        return {"edge_cpu_s_to_start": used, "edge_rss_mib": rss_mib(pep)}


def rss_mib(pep: Pep) -> float:
    """Returns the memory of `longhaul`, Envoy and CoreDNS. Pages of a program that two of them share count twice."""
    return resident_kib(pep.child.process.pid) / 1024


if __name__ == "__main__":
    sys.exit(parts.main("small-box", __doc__, PARTS, TARGETS, ready))
