"""A group beyond its quota beside a client of the same weight: a tenth of its weight, and every response whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.host.waiting import wait_for
from harness.lab.groups import accounts, bulk, group, until_weighed
from harness.lab.neighbours import BULK, CLIENTS, SERVERS, neighbour_bed
from harness.results.figures import at_most

TARGETS = [at_most("quota_slow_error", 0.1), at_most("quota_cut_responses", 0)]
GROUPS = [group("bridge", 0), group("crew", 1, quota="1mib/day")]
FAIR = 1 / 11
"""A tenth beside one."""
SECONDS, SKIP_S = 120, 30
WAYS = {"http": False, "https": True}


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Uses the quota up, then measures both schemes. The worse one counts."""
    seconds = 60 if quick else SECONDS
    figures: dict[str, float | None] = {}
    errors, cut = [], 0
    with neighbour_bed(folder, "fair", near={"clients": GROUPS}) as bed:
        bed.load(bulk(1, 2, 10, 0))
        wait_for("the quota", lambda: accounts(bed.running.remote)["crew"]["quota"]["slow"], timeout_s=60)
        until_weighed(bed, 1)
        for name, tls in WAYS.items():
            got = [one["bytes"] for one in bed.load(*(bulk(client, 4, seconds, SKIP_S, tls=tls) for client in (0, 1)))]
            figures[f"slow_part_{name}"] = got[1] / sum(got)
            errors.append(abs(got[1] / sum(got) - FAIR) / FAIR)
            get = {"do": "get", "host": BULK, "to": SERVERS[BULK], "from": CLIENTS[1], "after_s": 0, "number": 5}
            cut += sum(not one["whole"] for one in bed.load(get | {"tls": tls, "path": "/100000/close"}))
    figures |= {"quota_slow_error": max(errors), "quota_cut_responses": cut}
    return figures, {}
