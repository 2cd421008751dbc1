"""Small loads over https from names that nobody looked up before, on a ship's link.

A client starts a load from another name each 50 ms, eighty in all. A load is a lookup, a connection, TLS and a request.
Lookups that take connections of the pair leave none to the loads, which this shows.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.names_pairs import Way, side_by_side, site_of
from bench.names_queries import p95
from bench.names_remote import responses
from harness.clients.commands import Answer, Curl
from harness.lab.links import link
from harness.lab.quiet import wait_until_quiet
from harness.net.authority import Authority
from harness.net.topology import site_addresses
from harness.origins.program import Site
from harness.results.figures import at_most, ratio, table

TARGETS = [at_most("new_names_p50_vs_direct", 1.0), at_most("new_names_p95_vs_direct", 1.1)]
LINK = "maritime"
NAMES = 80
PAUSE_S = 0.05
ROUNDS, QUICK_ROUNDS = 5, 2
TIMEOUT_S = 30
DOMAIN = "new-longhaul.net"
BODY_BYTES = 1000


@dataclass(frozen=True)
class Round:
    """The loads of one round by one way."""

    p50_s: float
    p95_s: float
    failed: int
    connections: int
    """TCP connections that were opened over the link."""
    bytes_up: int
    bytes_down: int
    lookups: int
    """Responses that came to the remote over the link."""


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Loads from new names in rounds, by both ways in turns."""
    rounds = [_names_of(number) for number in range(QUICK_ROUNDS if quick else ROUNDS)]
    authority = Authority(folder)
    site = serving(list(itertools.chain(*rounds)), authority)
    seen: dict[str, list[Round]] = {"pair": [], "direct": []}
    with side_by_side(folder, site, LINK) as ways:
        for wanted in rounds:
            for way in ways:
                seen[way.name].append(one_round(way, wanted, authority))
    print(rows(seen), flush=True)
    details = {way: [asdict(one) for one in every] for way, every in seen.items()}
    return figures_of(seen["pair"], seen["direct"]), details


def figures_of(ours: list[Round], theirs: list[Round]) -> dict[str, float | None]:
    """Returns the ratios of all rounds and of the first one. After it, a pair holds more connections open."""
    return {
        "new_names_p50_vs_direct": ratio([one.p50_s for one in ours], [one.p50_s for one in theirs]),
        "new_names_p95_vs_direct": ratio([one.p95_s for one in ours], [one.p95_s for one in theirs]),
        "new_names_p50_vs_direct_at_first": ours[0].p50_s / theirs[0].p50_s,
        "new_names_p95_vs_direct_at_first": ours[0].p95_s / theirs[0].p95_s,
        "new_names_failed": sum(one.failed for one in ours),
    }


def _names_of(number: int) -> list[str]:
    return [f"n{one}-{number}.{DOMAIN}" for one in range(NAMES)]


def serving(names: Sequence[str], authority: Authority) -> Site:
    """Returns a site with a server of each name. One certificate is for all."""
    site = site_of({})
    site.ca, site.https_port = authority.files.as_dict(), 443
    for name, address in zip(names, itertools.cycle(site_addresses()), strict=False):
        site.hosts[name] = {"address": address, "special": True, "certificate": [f"*.{DOMAIN}"]}
    return site


def one_round(way: Way, wanted: Sequence[str], authority: Authority) -> Round:
    """Loads from names that are all new."""
    wait_until_quiet(way.wire, link(LINK).rtt_ms)
    before = sum(responses(way))
    way.wire.reset()
    answers = loads(way, wanted, authority)
    seen = way.wire.statistics()
    good = [one for one in answers if one.status == 200 and len(one.body) == BODY_BYTES]
    if failed := len(answers) - len(good):
        problems = {one.problem or f"status {one.status}" for one in answers if one not in good}
        print(f"{way.name}: {failed} of {len(answers)} loads failed: {sorted(problems)}", flush=True)
    if bool(way.pair) == bool(seen["dns"]["queries"]):
        raise RuntimeError(f"{way.name}: {seen['dns']['queries']} queries crossed the link as datagrams")
    seconds = [one.seconds for one in good]
    return Round(
        statistics.median(seconds), p95(seconds), failed, seen["tcp"]["connections"],
        seen["up"]["carried"]["bytes"], seen["down"]["carried"]["bytes"], sum(responses(way)) - before,
    )  # fmt: skip


def loads(way: Way, wanted: Sequence[str], authority: Authority) -> list[Answer]:
    """Starts a load from each name, one every 50 ms. The time of a load does not count the start of curl."""
    curl = Curl(way.folder, way.line.clients, "--cacert", str(authority.files.cert))
    began_s = time.monotonic()

    def load(number: int) -> Answer:
        time.sleep(max(0.0, began_s + number * PAUSE_S - time.monotonic()))
        return curl.get(f"https://{wanted[number]}/_/answer?size={BODY_BYTES}", timeout_s=TIMEOUT_S)

    with ThreadPoolExecutor(len(wanted)) as pool:
        return list(pool.map(load, range(len(wanted))))


def rows(seen: dict[str, list[Round]]) -> str:
    """Returns the table of the rounds."""
    lines = [["https loads from new names", "p50 s", "p95 s", "failed", "TCP", "kB down", "lookups"]]
    for way, every in seen.items():
        for number, one in enumerate(every):
            cells = [f"{one.p50_s:.2f}", f"{one.p95_s:.2f}", str(one.failed), str(one.connections)]
            lines.append([f"{way}, round {number + 1}", *cells, f"{one.bytes_down / 1000:.0f}", str(one.lookups)])
    return table(lines)
