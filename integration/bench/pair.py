"""`make bench ONLY=pair`: pages in Chromium over a satellite link by a pair, one box, a plain pair, and no box.

README.md beside this file says how each figure is measured. QUICK=1 takes one round. The bench needs root, because the
bed consists of network namespaces.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.boxes.admin import admin_socket, ask
from harness.host.artifacts import Missing, need_commands, scratch
from harness.host.processes import end_with_parent
from harness.host.usage import description
from harness.lab.bed import LinkBed, standing
from harness.lab.contenders import contender
from harness.lab.contenders.pair import LonghaulPair
from harness.lab.ideal import timeout_s
from harness.lab.links import link
from harness.lab.measure import Run, measure
from harness.lab.pages import Page, make_page
from harness.lab.tables import page_table
from harness.results.figures import at_least, at_most, table, verdicts, write

TARGETS = [
    at_least("https_first_byte_rtts_saved", 2.0),
    at_most("https_page_time_vs_direct", 0.55),
    at_most("page_time_vs_direct", 0.6),
    at_most("page_time_vs_edge", 0.8),
    at_most("pipe_handshakes_per_1000_requests", 0),
]

QUICK = bool(os.environ.get("QUICK"))
ROUNDS = 1 if QUICK else 5
LINK = "geo"
PAGES = ("cnn", "lab-modern")
SCHEMES = ("http", "https")
DIRECT, EDGE, PLAIN, PAIR = "direct", "longhaul-edge", "envoy-pair", "longhaul-pair"
CONTENDERS = (DIRECT, EDGE, PLAIN, PAIR)
REQUESTS = 1000
AT_ONCE = 50


def main() -> int:
    """Measures and prints everything, and writes target/bench/pair.json."""
    results = scratch("bench") / "pair.json"
    try:
        need_commands("chromium", "certutil", "curl", "nft")
        if os.geteuid() != 0:
            raise Missing("network namespaces need root")
    except Missing as reason:
        print(f"skipped: {reason}")
        write(results, {}, skipped=str(reason))
        return 0
    # Exits through every context manager, so that nothing of the bed remains.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    end_with_parent()
    machine = description()
    print(f"{machine}; {link(LINK).title}; {ROUNDS} rounds", flush=True)
    pages = [make_page(page_table(name)) for name in PAGES]
    with tempfile.TemporaryDirectory(prefix="lh-bench-") as folder:
        everybody = [contender(name) for name in CONTENDERS]
        with standing(Path(folder), link(LINK), pages, everybody, seed=1, weighed=False) as bed:
            handshakes = pipe_handshakes(bed, pages[0])
            loads = Loads()
            for run in turns(bed, pages):
                loads.add(run)
    figures = loads.figures() | {"pipe_handshakes_per_1000_requests": handshakes}
    print(f"\n{loads}\n\n{verdicts(figures, TARGETS)}\n\nwritten to {results}")
    write(results, figures, TARGETS, machine=machine, rounds=ROUNDS, loads=loads.as_dict(), failed=loads.failed)
    return 0


def turns(bed: LinkBed, pages: list[Page]) -> Iterator[Run]:
    """Yields every load. Contenders take turns, and each round begins with another one."""
    for number in range(ROUNDS):
        for page in pages:
            for scheme in SCHEMES:
                at = number % len(CONTENDERS)
                for name in CONTENDERS[at:] + CONTENDERS[:at]:
                    template = Run("pair", LINK, page.name, scheme, name, number + 1)
                    limit_s = timeout_s(page.name, link(LINK))
                    yield from measure(bed.track, page, bed.contenders[name], template, warm=False, timeout_s=limit_s)


def pipe_handshakes(bed: LinkBed, page: Page) -> float:
    """Returns the connections that the pipe opened in a thousand requests. The requests before them are not counted."""
    with bed.contenders[PAIR].engaged(bed.track):
        _ask(bed, page, AT_ONCE)
        before = _pipe_connections(bed)
        _ask(bed, page, REQUESTS)
        opened = _pipe_connections(bed) - before
    print(f"\n{REQUESTS} requests of {AT_ONCE} connections at once: {opened} handshakes of the pipe", flush=True)
    return opened * 1000 / REQUESTS


def _ask(bed: LinkBed, page: Page, requests: int) -> None:
    """Sends this many requests and requires that all succeed. The part after `#` makes curl repeat the URL and is not
    sent."""
    url = f"{page.url('http')}#[1-{requests}]"
    command = ["curl", "--silent", "--show-error", "--parallel", "--parallel-max", str(AT_ONCE), "--range", "0-99"]
    command += ["--output", "/dev/null", "--write-out", "%{response_code}\n", url]
    answers = bed.track.line.clients.run(*command).stdout.split()
    if len(answers) != requests or not set(answers) <= {"200", "206"}:
        raise RuntimeError(f"{len(answers)} answers to {requests} requests: {sorted(set(answers))}")


def _pipe_connections(bed: LinkBed) -> int:
    pair = bed.contenders[PAIR]
    assert isinstance(pair, LonghaulPair)
    text = ask(admin_socket(pair.remote_state(bed.track)), "/stats?filter=^cluster.pipe.upstream_cx_total$")
    return int(text.rsplit(":", 1)[1])


@dataclass
class Loads:
    """Page loads by page, scheme and contender, in the order of rounds."""

    runs: dict[tuple[str, str, str], list[Run]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def add(self, run: Run) -> None:
        """Records a load. A load that is not whole is printed, and its round has no comparison."""
        place = (run.page, run.scheme, run.contender)
        told = f"{run.scheme} {run.page}, {run.contender}, round {run.repeat}"
        if run.complete:
            self.runs.setdefault(place, []).append(run)
            print(f"{told}: {run.load_ms:.0f} ms, first byte {run.first_byte_ms:.0f} ms", flush=True)
        else:
            self.failed.append(f"{told}: {run.problem}")
            print(self.failed[-1], flush=True)

    def figures(self) -> dict[str, float | None]:
        """Returns the figures that are compared between runs: for the worse of the two pages, and for each page by
        name."""
        figures: dict[str, float | None] = {}
        for page in PAGES:
            own = {
                "https_page_time_vs_direct": self._ratio(page, "https", DIRECT),
                "page_time_vs_direct": self._ratio(page, "http", DIRECT),
                "page_time_vs_edge": self._ratio(page, "http", EDGE),
                "page_time_vs_plain_pair": self._ratio(page, "http", PLAIN),
                "https_page_time_vs_plain_pair": self._ratio(page, "https", PLAIN),
            }
            figures |= {f"{name}_{page.replace('-', '_')}": value for name, value in own.items()}
            for name, value in own.items():
                figures[name] = value if name not in figures else _worse(figures[name], value)
        saved = [self._saved_rtts(page) for page in PAGES]
        figures["https_first_byte_rtts_saved"] = None if None in saved else min(one for one in saved if one is not None)
        return figures

    def _pairs(self, page: str, scheme: str, peer: str, read: Callable[[Run], float]) -> list[tuple[float, float]]:
        """Returns the pair's and the peer's value for each round in which both loads are whole."""
        theirs = {run.repeat: run for run in self.runs.get((page, scheme, peer), [])}
        ours = self.runs.get((page, scheme, PAIR), [])
        return [(read(run), read(theirs[run.repeat])) for run in ours if run.repeat in theirs]

    def _ratio(self, page: str, scheme: str, peer: str) -> float | None:
        pairs = self._pairs(page, scheme, peer, lambda run: run.load_ms)
        return statistics.median(ours / theirs for ours, theirs in pairs) if pairs else None

    def _saved_rtts(self, page: str) -> float | None:
        pairs = self._pairs(page, "https", DIRECT, lambda run: run.first_byte_ms)
        return statistics.median(theirs - ours for ours, theirs in pairs) / link(LINK).rtt_ms if pairs else None

    def as_dict(self) -> list[dict[str, object]]:
        """Returns the medians, for JSON."""
        return [
            {"page": page, "scheme": scheme, "contender": name, "loads": len(runs),
             **{what: statistics.median(getattr(run, what) for run in runs) for what in _COLUMNS.values()}}
            for (page, scheme, name), runs in self.runs.items()
        ]  # fmt: skip

    def __str__(self) -> str:
        rows = [["medians", *_COLUMNS]]
        for one in self.as_dict():
            name = f"{one['scheme']} {one['page']}, {one['contender']}"
            rows.append([name, *(f"{one[what]:.0f}" for what in _COLUMNS.values())])
        return table(rows)


_COLUMNS = {
    "load ms": "load_ms", "first byte ms": "first_byte_ms", "TCP over the link": "connections",
    "DNS queries": "dns_queries", "bytes down": "bytes_down", "bytes up": "bytes_up",
}  # fmt: skip
"""The columns of the table, and the field of a load for each."""


def _worse(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else max(one, other)


if __name__ == "__main__":
    sys.exit(main())
