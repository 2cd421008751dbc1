"""`make bench ONLY=groups-day`: a day of mixed users on a ship's link, an hour in fifteen seconds. Writes
target/bench/groups-day.json.

The bridge has weight 4. The crew has a quota, and uses it up at noon. One client is in no group. A user of the bridge
and one of the crew browse all day. At noon, two others of the crew download. In the afternoon, bridge and crew do, and
the crew is slow then. In the evening, the client in no group uploads. The figures are the sums beside the link's, the
part of a slow client, and the times of pages in each part of the day: what a user beyond the quota sees. QUICK=1 takes
half of the time. Needs root.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import parts
from harness.host.artifacts import built, need_root
from harness.host.processes import end_with_parent
from harness.lab.groups import accounts, bulk, crossed, group, until_settled
from harness.lab.neighbours import CLIENTS, NeighbourBed, light_page, neighbour_bed
from harness.results.figures import at_most

TARGETS = [
    at_most("day_account_error", 0.01),
    at_most("day_broken_responses", 0),
]
GROUPS = [group("bridge", 0, weight=4), group("crew", 1, 2, 3, quota="10mib/day")]
OTHER = 4
"""A client in no group."""
HOUR_S, QUICK_HOUR_S = 15, 8
"""The length of an hour."""
PARTS_OF_DAY = {"morning": 4, "noon": 4, "afternoon": 4, "evening": 3, "night": 2}
"""Their hours. The crew is within its quota in the morning and for a part of noon."""
THINK_S = 2.0


def browse(client: int, name: str, seconds: float, *, tls: bool) -> dict[str, Any]:
    """A user who loads light pages with pauses."""
    job = {"do": "user", "from": CLIENTS[client], "tls": tls, "seconds": seconds, "think_s": THINK_S, "name": name}
    return job | light_page("FRESH")


def jobs(part: str, seconds: float) -> list[dict[str, Any]]:
    """Returns the jobs of the clients in a part of the day. A user of the bridge and one of the crew browse all day."""
    users = [browse(0, f"{part}-bridge", seconds, tls=True), browse(3, f"{part}-crew", seconds, tls=True)]
    greedy = [bulk(1, 2, seconds, 0), bulk(2, 2, seconds, 0, tls=True)]
    both = [bulk(0, 2, seconds, 0), bulk(1, 2, seconds, 0)]
    match part:
        case "morning":
            return [*users, browse(OTHER, f"{part}-other", seconds, tls=False)]
        case "noon":
            return [*users, *greedy]
        case "afternoon":
            return [*users, *both]
        case "evening":
            return [*users, bulk(OTHER, 1, seconds, 0, upload=True)]
        case _:
            return users[1:]


def moved(bed: NeighbourBed) -> dict[str, int]:
    """The bytes of each group so far, in both directions."""
    now = accounts(bed.running.remote)
    return {name: one["since_start"]["down"] + one["since_start"]["up"] for name, one in now.items()}


def words(bed: NeighbourBed) -> str:
    """Returns the line of `longhaul status` about the crew."""
    line = [built("longhaul"), "status", "--state", bed.running.remote.state]
    said = subprocess.run(line, capture_output=True, text=True, check=False).stdout
    return next((row.strip() for row in said.splitlines() if row.split()[1:2] == ["crew"] or " crew" in row), "")


def day(folder: Path, *, quick: bool) -> tuple[parts.Figures, Any]:
    """Runs the day."""
    hour_s = QUICK_HOUR_S if quick else HOUR_S
    figures: parts.Figures = {}
    details: dict[str, Any] = {}
    broken = 0
    with neighbour_bed(folder, "fair", near={"clients": GROUPS}) as bed:
        remote = bed.running.remote
        began, on_the_wire = sum(until_settled(remote).values()), crossed(remote)
        for part, hours in PARTS_OF_DAY.items():
            before = moved(bed)
            done = bed.load(*jobs(part, hours * hour_s))
            until_settled(remote)
            share = {name: count - before[name] for name, count in moved(bed).items()}
            pages = [one for one in done if "whole" in one]
            broken += sum(not one["whole"] for one in pages)
            crew = statistics.median(pages[-1 if part == "night" else 1]["seconds"])
            figures[f"day_crew_page_s_{part}"] = crew
            if part != "night":
                figures[f"day_bridge_page_s_{part}"] = statistics.median(pages[0]["seconds"])
            bulks = [one["bytes"] for one in done if "bytes" in one]
            details[part] = {"shares": share, "status": words(bed), "downloads": bulks}
            print(f"    {part}: {share}; {words(bed)}", flush=True)
        whole = sum(until_settled(remote).values()) - began
        crossed_bytes = crossed(remote) - on_the_wire
    first, second = details["afternoon"]["downloads"]
    figures |= {
        "day_account_error": abs(whole - crossed_bytes) / crossed_bytes,
        "day_broken_responses": broken,
        "day_slow_part": second / (first + second),
        "day_mb": whole / 1e6,
    }
    return figures, details


PARTS: dict[str, parts.Part] = {"day": lambda folder, options: day(folder, quick=options.quick)}


def ready() -> None:
    """Looks for what the day needs."""
    need_root()
    end_with_parent()


if __name__ == "__main__":
    sys.exit(parts.main("groups-day", __doc__, PARTS, TARGETS, ready))
