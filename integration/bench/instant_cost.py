"""The cost of instant responses: queries per second from memory, with and without them, and the memory of the table.

Both contenders have the plugins of a remote without a list. They take turns as in `names_pushed_rate`.
"""

from __future__ import annotations

import re
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.names_pushed_ground import Ground
from bench.names_pushed_rate import NAMES, QUICK_ROUNDS, ROUNDS, RUN_S, dnsperf, rows, run, started
from harness.host.artifacts import REPOSITORY, built
from harness.results.figures import at_least, at_most, ratio

TARGETS = [at_most("table_kib_per_1000_names", 200), at_least("qps_vs_before", 0.97)]
BROWSERS = "longhaul {\n        proxy 192.0.2.1\n        intercepted\n        browsers 198.18.0.0/15\n    }"


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Measures both in rounds, and the table by a benchmark of Go."""
    queries = folder / "queries"
    queries.write_text("".join(f"host{number}.site{number % 97}.example.org A\n" for number in range(NAMES)))
    with ExitStack() as stack:
        ground = stack.enter_context(Ground(folder))
        contenders = [
            stack.enter_context(started(folder, name, built("coredns"), ground.port, more=more))
            for name, more in (("waiting", ""), ("instant", BROWSERS))
        ]
        for one in contenders:
            dnsperf(one, queries, "-n", "2")
        for number in range(QUICK_ROUNDS if quick else ROUNDS):
            for one in contenders if number % 2 else reversed(contenders):
                run(one, queries, RUN_S)
    print(rows(contenders), flush=True)
    before, instant = contenders
    return {
        "table_kib_per_1000_names": table_kib(),
        "qps_vs_before": ratio(instant.qps, before.qps),
        "cpu_per_query_vs_before": ratio(instant.cpu_us, before.cpu_us),
    }, {one.name: {"qps": one.qps, "us of processor time": one.cpu_us} for one in contenders}


def table_kib() -> float:
    """Returns the memory that 1000 names take in the table."""
    command = ["go", "test", "-run", "-", "-bench", "TableMemory", "-benchtime", "1x", "./browsers/"]
    done = subprocess.run(command, cwd=REPOSITORY / "coredns-plugin", capture_output=True, text=True, check=True)
    found = re.search(r"([\d.]+) KiB/1000_names", done.stdout)
    if found is None:
        raise RuntimeError(f"no figure in {done.stdout}")
    return float(found[1])
