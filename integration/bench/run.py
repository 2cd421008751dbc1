"""`make bench`: runs one benchmark or all of them. Each is its own program, beside the code that it measures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.host.artifacts import REPOSITORY, scratch
from harness.host.usage import model
from harness.results.provenance import built_commit


@dataclass(frozen=True)
class Bench:
    """A benchmark: a description, and the command that runs it in a folder of the repository."""

    about: str
    folder: str
    program: str
    command: tuple[str, ...]

    def missing(self) -> str | None:
        """Returns why it cannot run."""
        if not (REPOSITORY / self.folder / self.program).exists():
            return f"there is no {self.folder}/{self.program}"
        if shutil.which(self.command[0]) is None:
            return f"{self.command[0]} is not installed"
        return None


BENCHES = {
    "url-rewrite": Bench(
        "rewriting pages, beside nginx, Apache and Envoy without the filter",
        "integration/bench", "url_rewrite.py", (sys.executable, "url_rewrite.py"),
    ),
    "edge": Bench(
        "the running edge, beside plain Envoy, nginx and Squid",
        "integration/bench", "edge.py", (sys.executable, "edge.py"),
    ),
    "capacity": Bench(
        "pages of one core and memory of idle users, at an edge and at both ends of a pair",
        "integration/bench", "capacity.py", (sys.executable, "capacity.py"),
    ),
    "pair": Bench(
        "(root) pages over a satellite link by a pair, beside one box and a plain pair",
        "integration/bench", "pair.py", (sys.executable, "pair.py"),
    ),
    "fleet-pair": Bench(
        "several grounds and many remotes: what is lost and what a connection costs",
        "integration/bench", "fleet_pair.py", (sys.executable, "fleet_pair.py"),
    ),
    "dns": Bench(
        "the DNS plugin, beside its peers",
        "coredns-plugin", "bench/main.go", ("go", "run", "./bench"),
    ),
    "hostile": Bench(
        "(root) what hostile clients and origins cost an edge and a pair",
        "integration/hostile", "figures.py", (sys.executable, "figures.py"),
    ),
    "field": Bench(
        "(root) faults of the field: programs, browsers, links and users of other kinds than our tests had",
        "integration/bench", "field.py", (sys.executable, "field.py"),
    ),
    "operator": Bench(
        "(root) an operator's evening on machines with systemd: quick starts, staged faults, an hour without any",
        "integration/bench", "operator_main.py", (sys.executable, "operator_main.py"),
    ),
    "operator-product": Bench(
        "(root) what an operator looks at: the reasons why a pair is slow, and the status page",
        "integration/bench", "operator_product.py", (sys.executable, "operator_product.py"),
    ),
    "fleet": Bench(
        "boxes that work together: a ring of caches of which one node dies",
        "integration/bench", "fleet.py", (sys.executable, "fleet.py"),
    ),
    "small-box": Bench(
        "(root) memory, processor time and an idle hour on the link of boxes with one core",
        "integration/bench", "small_box.py", (sys.executable, "small_box.py"),
    ),
    "neighbours": Bench(
        "(root) clients that share a ship's link with downloads of others, beside a pair without shares",
        "integration/bench", "neighbours.py", (sys.executable, "neighbours.py"),
    ),
    "two-links": Bench(
        "(root) a pair over two links of which one fails: cuts, pages, firewalls, an idle standby",
        "integration/bench", "two_links.py", (sys.executable, "two_links.py"),
    ),
    "groups": Bench(
        "(root) groups of clients on a ship's link: weights, quotas, the bill; and TCP ports beside the web",
        "integration/bench", "groups.py", (sys.executable, "groups.py"),
    ),
    "objects": Bench(
        "the cache, beside an edge without one",
        "integration/bench", "objects.py", (sys.executable, "objects.py"),
    ),
    "updates": Bench(
        "(root) what the cache of a remote spares the link: second users of pages, updates, downloads that break off",
        "integration/bench", "updates.py", (sys.executable, "updates.py"),
    ),
    "names": Bench(
        "(root) names that clients resolve at a box: lookups, their memory, first visits, and pages that break",
        "integration/bench", "names.py", (sys.executable, "names.py"),
    ),
    "instant": Bench(
        "(root) first lookups of browsers that a remote answers at once: first visits, programs, packets, rate",
        "integration/bench", "instant.py", (sys.executable, "instant.py"),
    ),
    "names-pushed": Bench(
        "(root) DNS responses that a ground sends before clients ask: first visits, a day, attacks, memory, rate",
        "integration/bench", "names_pushed.py", (sys.executable, "names_pushed.py"),
    ),
    "bundling": Bench(
        "which objects of saved pages bundling sends, beside what Chromium requests",
        "integration/bench", "bundling.py", (sys.executable, "bundling.py"),
    ),
    "groups-day": Bench(
        "(root) a day of mixed users in groups: shares, sums, and what a user beyond the quota sees",
        "integration/bench", "groups_day.py", (sys.executable, "groups_day.py"),
    ),
    "bytes": Bench(
        "bytes of pages and scripts on the pipe of a pair, beside gzip; smaller images, beside cwebp",
        "integration/bench", "bytes.py", (sys.executable, "bytes.py"),
    ),
    "header-compression": Bench(
        "headers on the pipe, beside HPACK",
        "filters/header-compression/bench", "run.py", (sys.executable, "run.py"),
    ),
}  # fmt: skip


def main(arguments: list[str]) -> int:
    """Runs the named benchmarks, or all. The exit code is 0 if all of them ran, 1 if not, and 2 for an unknown name.

    Arguments after `--` go to the benchmark, of which there must be one. File names among them are relative to the
    current folder.
    """
    arguments, passed = split(arguments)
    unknown = [name for name in arguments if name not in BENCHES]
    if unknown:
        print(f"no benchmark is called {', '.join(unknown)}; there are:", file=sys.stderr)
        for name, bench in BENCHES.items():
            print(f"  make bench ONLY={name:<20} {bench.about}", file=sys.stderr)
        return 2
    if passed and len(arguments) != 1:
        print("what follows -- goes to one benchmark: name it, for example ONLY=header-compression", file=sys.stderr)
        return 2
    return max(run(name, BENCHES[name], passed) for name in arguments or BENCHES)


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Returns the names of benchmarks, and the arguments after `--`."""
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], [str(Path(word).resolve()) if Path(word).exists() else word for word in arguments[at + 1 :]]


def run(name: str, bench: Bench, passed: list[str]) -> int:
    """Runs one in its own process, and adds the origin of its figures to them."""
    results = scratch("bench") / f"{name}.json"
    began_s = time.time()
    print(f"== {name}: {bench.about}", flush=True)
    if reason := bench.missing():
        print(f"{name} did not run: {reason}", file=sys.stderr, flush=True)
        return 1
    code = subprocess.run([*bench.command, *passed], cwd=REPOSITORY / bench.folder, check=False).returncode
    if results.exists() and results.stat().st_mtime >= began_s:
        stamp(results)
    return min(1, code)


def stamp(results: Path) -> None:
    """Adds the origin of the figures to a file of results: the commit, the date, the machine, and the kind of run."""
    origin = {
        "commit": built_commit(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": model(),
        "quick": bool(os.environ.get("QUICK")),
    }
    results.write_text(json.dumps(origin | json.loads(results.read_text()), indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
