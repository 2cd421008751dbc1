"""DNS queries per second of a remote's CoreDNS that serves names from memory, beside that of an earlier commit.

The contenders are the CoreDNS before names were pushed, and today's twice: where nobody serves the stream of names, and
with an open stream. They have the same plugins as a remote. All names are in memory before the measurement. Contenders
take turns on one core, and dnsperf has the other. Each round begins with another one. A figure is the median of the
ratios within rounds.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from bench.before import coredns_of
from bench.names_pushed_ground import Ground
from harness.boxes.pep import parse_metrics
from harness.host.artifacts import built
from harness.host.ports import free_ports
from harness.host.processes import Child
from harness.host.usage import cores, cpu_seconds, pinned
from harness.host.waiting import wait_for
from harness.results.figures import at_least, ratio, table

TARGETS = [at_least("qps_vs_before", 0.97)]
BEFORE_COMMIT = "2eec5772"
"""The last one without names that are sent before they are asked."""
BEFORE, CLOSED, STREAM = "before", "no stream", "stream"
NAMES = 9_000
ROUNDS, QUICK_ROUNDS = 45, 6
RUN_S = 1
"""Short, so that other work of the machine meets all contenders of a round."""
COREFILE = """.:{port} {{
    bind 127.0.0.1
    errors
    prometheus 127.0.0.1:{metrics}
    bufsize 1232
    any
    {more}
    remember {names} {{
        for 604800s
        size 41943040
        {pushed}
    }}
    forward . 127.0.0.1:{upstream} {{
        max_fails 0
    }}
}}
"""


@dataclass
class Contender:
    """A running CoreDNS."""

    name: str
    child: Child
    port: int
    metrics_port: int
    qps: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)
    """Processor time for each query."""

    def counted(self, metric: str) -> float:
        """Returns the sum of a metric over its labels."""
        with urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as page:
            metrics = parse_metrics(page.read().decode())
        return sum(value for name, value in metrics.items() if name.partition("{")[0] == metric)


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Measures in rounds."""
    program = coredns_of(BEFORE_COMMIT)
    queries = folder / "queries"
    queries.write_text("".join(f"host{number}.site{number % 97}.example.org A\n" for number in range(NAMES)))
    with ExitStack() as stack:
        ground = stack.enter_context(Ground(folder))
        contenders = [
            stack.enter_context(started(folder, name, path, ground.port, pushed))
            for name, path, pushed in (
                (BEFORE, program, ""),
                (CLOSED, built("coredns"), f"pushed {folder / 'nobody.sock'}"),
                (STREAM, built("coredns"), f"pushed {ground.socket}"),
            )
        ]
        streaming = contenders[-1]
        wait_for("the stream", lambda: streaming.counted("coredns_remember_pushed_stream") == 1)
        for one in contenders:
            dnsperf(one, queries, "-n", "2")
        asked = [one.counted("coredns_remember_asked_total") for one in contenders]
        for number in range(QUICK_ROUNDS if quick else ROUNDS):
            first = number % len(contenders)
            for one in [*contenders[first:], *contenders[:first]]:
                run(one, queries, RUN_S)
        if asked != [one.counted("coredns_remember_asked_total") for one in contenders]:
            raise RuntimeError("some queries were not served from memory")
        if streaming.counted("coredns_remember_pushed_stream") != 1:
            raise RuntimeError("the stream has ended")
    print(rows(contenders), flush=True)
    before, closed, stream = contenders
    ratios = {one.name: ratio(one.qps, before.qps) for one in (closed, stream)}
    return {
        "qps_vs_before": min(ratios.values()),
        "qps_vs_before_without_stream": ratios[CLOSED],
        "qps_vs_before_with_stream": ratios[STREAM],
        "cpu_per_query_vs_before": max(ratio(one.cpu_us, before.cpu_us) for one in (closed, stream)),
    }, {one.name: {"qps": one.qps, "us of processor time": one.cpu_us} for one in contenders}


@contextmanager
def started(
    folder: Path, name: str, program: Path, upstream: int, pushed: str = "", *, more: str = ""
) -> Iterator[Contender]:
    """Runs a CoreDNS on the contenders' core. `more` is the block of a further plugin."""
    home = folder / name.replace(" ", "-")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    port, metrics = free_ports(2)
    corefile = home / "Corefile"
    names = home / "names.bin"
    corefile.write_text(
        COREFILE.format(port=port, metrics=metrics, upstream=upstream, names=names, pushed=pushed, more=more)
    )
    with Child(pinned([program, "-conf", corefile], cores()[0]), home / "coredns.log") as child:
        child.wait_for_output("CoreDNS-")
        yield Contender(name, child, port, metrics)


def run(one: Contender, queries: Path, seconds: int) -> None:
    """Measures a contender once."""
    before_s = cpu_seconds(one.child.process.pid)
    qps = dnsperf(one, queries, "-l", str(seconds))
    one.qps.append(qps)
    one.cpu_us.append((cpu_seconds(one.child.process.pid) - before_s) * 1e6 / (qps * seconds))


def dnsperf(one: Contender, queries: Path, *options: str) -> float:
    """Runs dnsperf with eight clients. Returns the queries per second. Raises if a query is lost."""
    line = ["dnsperf", "-s", "127.0.0.1", "-p", str(one.port), "-d", str(queries), "-c", "8", "-T", "1", "-q", "100"]
    done = subprocess.run(pinned([*line, *options], cores()[1]), capture_output=True, text=True, check=True)
    found = {
        key: float(match[1])
        for key in ("Queries per second", "Queries lost")
        if (match := re.search(rf"{key}:\s+([\d.]+)", done.stdout))
    }
    if found["Queries lost"]:
        raise RuntimeError(f"{one.name} lost {found['Queries lost']:.0f} queries")
    return found["Queries per second"]


def rows(contenders: Sequence[Contender]) -> str:
    """Returns the table of medians."""
    lines = [["CoreDNS", "queries/s", "lowest", "highest", "us of core each"]]
    for one in contenders:
        values = (statistics.median(one.qps), min(one.qps), max(one.qps))
        lines.append([one.name, *(f"{value:.0f}" for value in values), f"{statistics.median(one.cpu_us):.1f}"])
    return table(lines)
