"""`make bench ONLY=hostile`: the cost of hostile clients and origins, as figures. Needs root.

Every case of `integration/hostile` runs, including the long ones. Then http-tests/cache-tests runs if
LONGHAUL_CACHE_TESTS names a checkout. Some figures come from the output of tests in other folders: see `HELD_BY`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.host.artifacts import REPOSITORY, Missing, need_commands, need_root, scratch
from harness.host.usage import description
from harness.results.figures import at_least, at_most, verdicts, write
from hostile import cache_tests
from hostile.beds import TARGETS, Target
from hostile.cases import Outcome, run, table
from hostile.families import FAMILIES
from hostile.families.odd_responses import RESPONSES, lost_connections
from hostile.families.slow_readers import CACHEABLE, UNCACHEABLE, cost_mib

TARGETS_OF_FIGURES = [
    at_most("mib_per_slow_client", 1.0),
    at_most("mib_per_slow_client_cacheable", 4.0),
    at_most("poisoned_responses", 0),
    at_most("pipe_connections_lost_by_hostile_origin", 0),
    at_most("bodies_cut", 0),
    at_most("shared_private_responses", 0),
    at_most("forbidden_connections", 0),
    at_most("forged_consents", 0),
    at_most("planted_beacons", 0),
    at_least("serving_envoys_min", 1),
    at_most("new_name_cpu_at_10k_names_vs_200", 3.0),
    at_most("cache_tests_wrong_reuse", 0),
    at_least("cache_tests_passed", 285),
    at_most("cache_tests_unexplained", 0),
    at_least("bundle_precision", 0.95),
    at_least("bundle_recall_of_markup", 0.95),
    at_most("page_fetched_again", 0),
]

BENCHES = REPOSITORY / "integration/bench"
QUICK = bool(os.environ.get("QUICK"))
CLIENTS, BODY_BYTES = (4, 40_000_000) if QUICK else (10, 200_000_000)

FIGURES_OF_FAMILIES = {
    "schemes": "poisoned_responses",
    "compression": "bodies_cut",
    "sharing": "shared_private_responses",
    "forbidden addresses": "forbidden_connections",
}
"""Each figure is the number of broken cases in its family."""

_CARGO = ["cargo", "test", "-q", "--locked", "-p"]
HELD_BY: dict[str, list[str]] = {
    "serving_envoys_min": [*_CARGO, "longhaul", "--lib", "lineage", "--", "--nocapture"],
    "planted_beacons": [*_CARGO, "page-flights", "--lib", "beacon", "--", "--nocapture"],
    "forged_consents": [sys.executable, "-m", "pytest", "-sq", "integration/e2e/test_pair_consent.py", "-k", "forges"],
    "new_name_cpu_at_10k_names_vs_200": [
        *_CARGO, "longhaul", "--test", "envoy", "a_new_name_costs", "--", "--ignored", "--nocapture",
    ],
}  # fmt: skip
"""Commands, run in the repository, that print `FIGURE NUMBER` on a line. A figure whose test fails is absent."""


def main() -> int:
    """Measures and prints everything, and writes target/bench/hostile.json."""
    results = scratch("bench") / "hostile.json"
    machine = description()
    try:
        need_root()
        need_commands("ip", "nft", "nsenter", "unshare", "curl")
    except Missing as reason:
        print(f"skipped: {reason}")
        write(results, {}, skipped=str(reason))
        return 0
    figures: dict[str, float | None] = {}
    outcomes: list[Outcome] = []
    for name, stand in TARGETS.items():
        with tempfile.TemporaryDirectory(prefix="longhaul-hostile-") as folder:
            Path(folder).chmod(0o755)
            with stand(Path(folder)) as target:
                for family, cases in FAMILIES.items():
                    outcomes += run(family, cases, target, long=not QUICK)
                _largest(figures, slow_clients(target))
                if name == "pair":
                    figures["pipe_connections_lost_by_hostile_origin"] = sum(
                        lost_connections(target, response)[0] for response in RESPONSES.values()
                    )
    for family, figure in FIGURES_OF_FAMILIES.items():
        figures[figure] = sum(bool(one.broke) for one in outcomes if one.family == family)
    cases, missing = suite()
    figures |= cases | held_elsewhere()
    print(f"\n{table(outcomes)}\n\n{verdicts(figures, TARGETS_OF_FIGURES)}\n")
    for line in missing:
        print(f"absent: {line}")
    broken = [str(one) for one in outcomes if one.broke]
    write(results, figures, TARGETS_OF_FIGURES, machine=machine, broken=broken, absent=missing)
    print(f"written to {results}")
    return 0


def slow_clients(target: Target) -> dict[str, float]:
    """Returns the memory cost of a client that requests a large body and reads nothing."""
    ways = [{"moved": False}] + ([{"moved": True}] if target.has_tls else [])

    def most(lines: tuple[str, ...]) -> float:
        return max(cost_mib(target, lines, clients=CLIENTS, body_bytes=BODY_BYTES, **way) for way in ways)

    return {"mib_per_slow_client": most(UNCACHEABLE), "mib_per_slow_client_cacheable": most(CACHEABLE)}


def suite() -> tuple[dict[str, float | None], list[str]]:
    """Returns figures of http-tests/cache-tests: wrong reuse, and tests passed."""
    try:
        found = cache_tests.run()
    except Missing as reason:
        return {"cache_tests_wrong_reuse": None, "cache_tests_passed": None}, [f"cache_tests_*: {reason}"]
    write(scratch("bench") / "cache-tests.json", {}, tests=found.by_id)
    unexplained = found.unexplained()
    print(f"wrong reuse: {found.wrong_reuse}; not explained: {unexplained}")
    return {
        "cache_tests_wrong_reuse": len(found.wrong_reuse),
        "cache_tests_passed": found.passed,
        "cache_tests_unexplained": len(unexplained),
    }, []


def held_elsewhere() -> dict[str, float | None]:
    """Returns figures that tests in other languages print."""
    found: dict[str, float | None] = {}
    for figure, command in HELD_BY.items():
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        match = re.search(rf"\b{figure}\b\D{{0,3}}(\d+(?:\.\d+)?)", done.stdout + done.stderr)
        found[figure] = float(match[1]) if match and done.returncode == 0 else None
    missing = subprocess.run([sys.executable, "bundling.py"], cwd=BENCHES, check=False).returncode
    bundling = scratch("bench") / "bundling.json"
    if not missing and bundling.exists():
        found |= json.loads(bundling.read_text())["figures"]
    return found


def _largest(figures: dict[str, float | None], more: dict[str, float]) -> None:
    """Keeps the worst value of several targets."""
    for name, value in more.items():
        figures[name] = max(value, figures.get(name) or 0.0)


if __name__ == "__main__":
    sys.exit(main())
