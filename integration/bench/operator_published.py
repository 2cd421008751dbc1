"""The table of the staged faults in FAULTS.md, which is a page of the guide, from the results of the last run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.operator_staged import MENDED_S, shown
from bench.operator_table import FAULTS
from bench.operator_watch import PLACES

BEGIN, END = "<!-- staged: begin -->", "<!-- staged: end -->"


def publish(results: Path) -> None:
    """Replaces the table between the two marks."""
    run = json.loads(results.read_text())
    before, _, rest = FAULTS.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    FAULTS.write_text(f"{before}{BEGIN}\n\n{text(run)}\n{END}{after}")


def text(run: dict[str, Any]) -> str:
    """The table, and the origin of its figures."""
    lines = [
        "| fault | status, s | page, s | journal, s | the cure that was named | works again, s |",
        "|---|---|---|---|---|---|",
    ]
    for one in run["details"]["faults"]:
        seconds = [shown(one["seconds"].get(place)) for place in PLACES]
        cure = f"`` {one['cure']} ``" if one["cure"] else "none"
        again = shown(one["mended_s"]) if one["cure"] else ""
        lines.append(f"| {' | '.join((one['name'], *seconds, cure, again))} |")
    origin = (
        f"`make bench ONLY=operator ARGS=--part=faults` measured this on {run['date']} at commit `{run['commit']}`.\n"
        f"Machine: {run['machine']}.\n"
        "A dash is a fault without a name (a service that did not start has no status), "
        f"or a pair that did not work again within {MENDED_S} s."
    )
    return "\n".join([*lines, "", origin, ""])
