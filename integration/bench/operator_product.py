"""`make bench ONLY=operator-product`: the things that an operator looks at. `longhaul status --why` names injected
causes of slowness, alone and two at once, and none on healthy loads. The status page is small and quick. Packages
and recipes install a box, upgrade it and go back. Writes target/bench/operator-product.json.

QUICK=1 injects three causes and watches five healthy loads. `ARGS=--part=causes` runs one part, and
`ARGS='--part=causes --only=queue'` some causes. Needs root.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import operator_install, parts
from bench.operator_product_bed import CAUSES, Bed, product_bed
from bench.operator_product_loads import HEALTHY, Load, surfing
from harness.host.artifacts import need_commands, need_root
from harness.net import namespaces
from harness.results.figures import at_least, at_most

TARGETS = [
    at_least("why_right", 9),
    at_most("why_false", 0),
    at_most("page_kib", 100),
    at_most("page_ms", 50),
    *operator_install.TARGETS,
]
ALONE = ("queue", "resolver", "place", "origin", "loss")
TOGETHER = (
    ("round_trip", "client_network"),
    ("rate", "resolver"),
    ("loss", "origin"),
    ("queue", "place"),
    ("resolver", "origin"),
)
INJECTED = (*((one,) for one in ALONE), *TOGETHER)
LINKS = ("geo", "maritime", "leo", "rural-lte")
MINUTE_S = 72
"""The minute of the figures, and the time until the next report of it."""
EACH_S = 40
"""The length of a healthy load. The figures of a load also have the end of the one before."""
LOOKS = 11


def named(bed: Bed) -> list[str]:
    """The causes that the remote names now."""
    said = json.loads(bed.status("--why", "--json"))
    return sorted(part["cause"] for part in (said["why"] or {"parts": []})["parts"] if part["is_cause"])


def causes(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Each cause alone, and pairs of them. A result is right if it names all of them and nothing else."""
    rows: list[dict[str, Any]] = []
    wanted = INJECTED[::4] if options.quick else INJECTED
    for number, injected in enumerate(one for one in wanted if not options.only or set(one) & set(options.only)):
        place = folder / str(number)
        place.mkdir()
        with product_bed(place, "geo", injected) as bed, surfing(bed, **bed.habits):
            time.sleep(MINUTE_S)
            found = named(bed)
            right = found == sorted(injected)
            rows.append({"injected": injected, "named": found, "right": right, "text": bed.status("--why")})
            print(f"    {' and '.join(injected)}: {', '.join(found) or 'none'}{'' if right else '  WRONG'}", flush=True)
            if not right:
                print(rows[-1]["text"], flush=True)
    return {"why_right": sum(row["right"] for row in rows), "why_injected": len(rows)}, rows


def healthy(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:
    """Loads on links that are as configured. Any cause is a false one."""
    rows: list[dict[str, Any]] = []
    for profile in LINKS[:1] if options.quick else LINKS:
        place = folder / profile
        place.mkdir()
        with product_bed(place, profile) as bed:
            rows += [calm(bed, profile, load) for load in HEALTHY]
    return {"why_false": sum(bool(row["named"]) for row in rows), "why_healthy": len(rows)}, rows


def calm(bed: Bed, profile: str, load: Load) -> dict[str, Any]:
    """Runs a healthy load, and returns what the remote names at its end."""
    with surfing(bed, **load.habits):
        time.sleep(EACH_S)
        found = named(bed)
    print(f"    {profile}, {load.name}: {', '.join(found) or 'none'}", flush=True)
    text = bed.status("--why")
    if found:
        print(text, flush=True)
    return {"link": profile, "load": load.name, "named": found, "text": text}


def page(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, Any]:  # noqa: ARG001 - a part has options
    """The status page of a remote under load: its bytes with its style sheet and script, and the time of its server."""
    with ExitStack() as stack:
        bed = stack.enter_context(product_bed(folder, "geo"))
        stack.enter_context(surfing(bed))
        time.sleep(20)
        size = sum(bed.page(path)[0] for path in ("/", "/page.css", "/page.js"))
        seconds = []
        for _ in range(LOOKS):
            # Pages of the same second are the same.
            time.sleep(1.2)
            seconds.append(bed.page("/")[1])
    return {"page_kib": size / 1024, "page_ms": statistics.median(seconds) * 1000}, {"seconds": seconds}


PARTS: dict[str, parts.Part] = {
    "causes": causes,
    "healthy": healthy,
    "page": page,
    "install": parts.of_module(operator_install),
}


def main() -> int:
    """Measures and prints all parts."""
    parser = parts.parser("operator-product", __doc__, PARTS)
    parser.add_argument("--only", action="append", choices=CAUSES, help="injections with this cause alone")
    options = parser.parse_args()

    def ready() -> None:
        need_root()
        need_commands("nft", "nsenter", "unshare", "curl")
        namespaces.sweep()

    return parts.measure("operator-product", PARTS, TARGETS, options, ready)


if __name__ == "__main__":
    sys.exit(main())
