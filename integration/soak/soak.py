"""Longhaul under load, and the growth of its memory. Everything is on loopback, and root is not needed.

    python integration/soak/soak.py --seconds 3600

Prints one line a minute and the result, and writes target/bench/soak.json. Growth is the difference of the resident set
between the second fifth of the time and the last, as medians. Caches and pools are full after the first fifth.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.boxes.desk import IMG, WWW, desk_in
from harness.boxes.pep import Pep
from harness.host.artifacts import scratch
from soak.load import Client, Target

CLIENTS = 4
MIB = 1 << 20


@dataclass
class Result:
    """The outcome. Sizes are in MiB, by program."""

    growth_mib: dict[str, float]
    rss_mib: dict[str, float]
    answers: int
    names: int
    failures: list[str]
    restarts: bool


def resident_bytes(pid: int) -> int:
    """Returns the resident set of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))


def children(parent: int) -> dict[str, int]:
    """Returns the processes of a run, by the name of their program."""
    found = {"longhaul": parent}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition(" (")[2].rpartition(") ")
        except OSError:
            continue
        if int(rest.split()[1]) == parent:
            found[name] = int(stat.parent.name)
    return found


def soak(seconds: float, folder: Path, say: Callable[[str], None] = lambda _: None, *, pages: int = 38_000) -> Result:
    """Runs the load for this time. The cache holds about 80 bytes for each of the `pages`."""
    stop = threading.Event()
    samples: list[dict[str, int]] = []
    with (
        desk_in(folder) as desk,
        Pep(desk.write(cache={**desk.config["cache"], "size": "16mib"}), folder, log_requests=False) as pep,
    ):
        target = Target(desk.http, desk.dns, WWW, IMG, pages)
        clients = [Client(seed, target, stop) for seed in range(CLIENTS)]
        for client in clients:
            client.start()
        begun = time.monotonic()
        told = begun
        try:
            while (now := time.monotonic()) - begun < seconds:
                pids = children(pep.child.process.pid)
                samples.append({name: resident_bytes(pid) for name, pid in pids.items()})
                if now - told >= 60:
                    told = now
                    sizes = ", ".join(f"{name} {size / MIB:.1f} MiB" for name, size in samples[-1].items())
                    say(f"{now - begun:.0f} s: {sum(one.count.answers for one in clients)} answers, {sizes}")
                stop.wait(min(1.0, seconds / 50))
        finally:
            stop.set()
            for client in clients:
                client.join(30)
        restarts = "starting it again" in pep.output()
    return Result(
        growth_mib={name: growth([sample[name] for sample in samples]) for name in samples[-1]},
        rss_mib={name: round(size / MIB, 1) for name, size in samples[-1].items()},
        answers=sum(client.count.answers for client in clients),
        names=sum(client.count.names for client in clients),
        failures=[failure for client in clients for failure in client.count.failures],
        restarts=restarts,
    )


def growth(sizes: list[int]) -> float:
    """Returns the growth between the second fifth and the last, in MiB."""
    fifth = max(len(sizes) // 5, 1)
    return round((statistics.median(sizes[-fifth:]) - statistics.median(sizes[fifth : 2 * fifth])) / MIB, 2)


def main() -> int:
    """Runs the load and prints the result. Returns 1 if anything failed."""
    parser = argparse.ArgumentParser(description="Longhaul under load for a while, and what its memory did")
    parser.add_argument("--seconds", type=float, default=3600.0)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="longhaul-soak-") as folder:
        result = soak(seconds, Path(folder), lambda line: print(line, flush=True))
    total = round(sum(result.growth_mib.values()), 2)
    print(f"{result.answers} answers, {result.names} names, {len(result.failures)} failures in {seconds:.0f} s")
    for name, size in result.rss_mib.items():
        print(f"  {name:<10} {size:8.1f} MiB resident, grown by {result.growth_mib[name]:+.2f} MiB")
    print(f"  together grown by {total:+.2f} MiB")
    for failure in result.failures[:10]:
        print(f"  failed: {failure}")
    figures = {"rss_mib_growth": total, "seconds": seconds, "answers": result.answers, "failures": len(result.failures)}
    if seconds >= 3600:
        figures["rss_mib_after_1h_soak_growth"] = total
    figures |= {f"{name}_rss_mib_growth": value for name, value in result.growth_mib.items()}
    (scratch("bench") / "soak.json").write_text(json.dumps({"figures": figures}, indent=1) + "\n")
    return 1 if result.failures or result.restarts else 0


if __name__ == "__main__":
    sys.exit(main())
