"""Lookups of a pair whose files state a third of the link's round trip (F39), without and with lost packets.

All timers are too short then. Lookups meet them beside a download, right after it, and after a pause in which
connections become idle. A lookup fails if its response says nothing about the name, or if none comes in the time of a
stub resolver.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from bench.names_pairs import site_of
from bench.names_queries import Lookup, Pace, look_up, questions
from bench.names_remote import responses_by_way
from harness.clients.commands import Curl
from harness.lab.init_pair import pair_of_init
from harness.lab.line import Line
from harness.lab.links import link
from harness.origins.program import Origins
from harness.results.figures import at_most, table

TARGETS = [at_most("lookups_failed_rtt_third", 0)]
LINK = "maritime"
STATED = replace(link(LINK), rtt_ms=round(link(LINK).rtt_ms / 3))
LOSS = "0.01"
BEDS: dict[str, Mapping[str, str]] = {"": {}, "_loss": {"up.random_loss": LOSS, "down.random_loss": LOSS}}
"""The changes of the emulated link, by the suffix of the figure."""
ROUNDS, QUICK_ROUNDS = 6, 1
HOST = "downloads.example.org"
DOWNLOAD_BYTES = 700_000
BESIDE, AFTER = 8, 4
BESIDE_PACE = Pace(pause_s=0.3)
IDLE_S = 12
"""CoreDNS closes a TCP connection after 10 s without a query."""


@dataclass
class Seen:
    """The lookups by their moment."""

    lookups: dict[str, list[Lookup]] = field(default_factory=dict)
    by_way: dict[str, int] = field(default_factory=dict)
    """Responses over the link by streams and by connections."""
    lost_packets: int = 0

    @property
    def failed(self) -> int:
        """Counts the lookups that failed."""
        return sum(one.failed for every in self.lookups.values() for one in every)


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Measures on the link as it is, and with loss."""
    figures: dict[str, float | None] = {}
    details: dict[str, Any] = {"stated": STATED.setting, "true round trip, ms": link(LINK).rtt_ms}
    for suffix, changes in BEDS.items():
        (home := folder / f"link{suffix}").mkdir()
        seen = lookups_on(home, changes, QUICK_ROUNDS if quick else ROUNDS)
        name = f"lookups_failed_rtt_third{suffix}"
        print(f"{name}\n{rows(seen)}", flush=True)
        figures[name] = seen.failed
        details[name] = {
            "responses over the link": seen.by_way,
            "lost packets": seen.lost_packets,
            "failures": [str(one) for every in seen.lookups.values() for one in every if one.failed],
        }
    return figures, details


def lookups_on(folder: Path, changes: Mapping[str, str], rounds: int) -> Seen:
    """Looks up new names in rounds, each with a download."""
    seen = Seen()
    fresh = (f"n{number}.example.org" for number in count())
    names = {f"n{number}.example.org": "203.0.113.9" for number in range(rounds * (BESIDE + 2 * AFTER))}
    site = site_of(names)
    site.hosts[HOST] = {"address": "203.0.113.10", "special": True}
    with (
        Line(folder, LINK, seed=1, changes=dict(changes)) as line,
        Origins(site.write(folder / "site.json"), folder, line.internet),
        pair_of_init(folder, line, STATED.setting) as both,
        ThreadPoolExecutor(1) as pool,
    ):
        for _ in range(rounds):
            download = pool.submit(downloaded, folder, line)
            beside = [next(fresh) for _ in range(BESIDE)]
            _add(seen, "beside a download", look_up(line.clients, questions(beside), BESIDE_PACE))
            download.result()
            for moment, pause_s in (("after a download", 0), ("after a pause", IDLE_S)):
                time.sleep(pause_s)
                for _ in range(AFTER):
                    _add(seen, moment, look_up(line.clients, questions([next(fresh)])))
        seen.by_way, seen.lost_packets = responses_by_way(both), lost_packets(line)
    if bool(changes) != bool(seen.lost_packets):
        raise RuntimeError(f"{seen.lost_packets} packets were lost on a link with {changes}")
    every = [one for lookups in seen.lookups.values() for one in lookups]
    if sum(seen.by_way.values()) < len(every) - seen.failed:
        raise RuntimeError(f"the pair was not used by all of {len(every)} lookups: {seen.by_way}")
    return seen


def _add(seen: Seen, moment: str, lookups: list[Lookup]) -> None:
    seen.lookups.setdefault(moment, []).extend(lookups)


def downloaded(folder: Path, line: Line) -> None:
    """Downloads over http, to the end. No box can compress noise."""
    answer = Curl(folder, line.clients).get(f"http://{HOST}/_/answer?body=noise&size={DOWNLOAD_BYTES}", timeout_s=120)
    if len(answer.body) != DOWNLOAD_BYTES:
        raise RuntimeError(f"a download beside the lookups: status {answer.status}, {len(answer.body)} bytes")


def lost_packets(line: Line) -> int:
    """Returns the packets that the link lost by chance."""
    assert line.link
    seen = line.link.statistics()
    return sum(seen[way]["dropped"]["random_loss"]["packets"] for way in ("up", "down"))


def rows(seen: Seen) -> str:
    """Returns the table of lookups by their moment."""
    lines = [["new names", "lookups", "failed", "slowest s"]]
    for moment, every in seen.lookups.items():
        slowest = max((one.seconds or 0 for one in every), default=0)
        lines.append([moment, str(len(every)), str(sum(one.failed for one in every)), f"{slowest:.2f}"])
    return table(lines)
