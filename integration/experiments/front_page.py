"""The table of the front page: today's links, two pages, the ways of an operator, and the best peer.

    python -m experiments --only front-page         the loads
    python -m experiments.front_page NOTE           writes results/front-page.json from them

Browsers have https-first and QUIC on. The pair has the files of `longhaul pair init`, and one with a list is a second
contender. It is not part of the whole set, because it repeats loads of `today` and `cells`.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from harness.host.artifacts import scratch
from harness.lab.contenders import contender
from harness.lab.ideal import Bound, Weight
from harness.lab.links import Link, link
from harness.lab.measure import run_from
from harness.results.provenance import RESULTS, built_commit, machine_class

from .catalogue import MORE_LOADS, Experiment
from .goals import PEERS
from .plan import Group
from .results import Cell, Results

NAME = "front-page"
RESULT = RESULTS / f"{NAME}.json"

LINKS = {
    "geo": "geostationary satellite",
    "maritime": "ship's satellite link",
    "cdma-congested": "congested cell",
    "cdma-average": "average cell",
    "rural-lte": "rural LTE",
    "leo": "low orbit",
}
"""The links, in the order of the table, in the words of the front page."""
PAGES = {"median-2025": "heavy", "cnn": "light"}
SCHEMES = ("http", "https")

DIRECT, EDGE, LISTED = "direct", "longhaul-edge", "longhaul-pair-default"
FIRST, SECOND = "longhaul-pair-first-visit", "longhaul-pair-second-day"
WAYS = {DIRECT: "direct", EDGE: "edge", FIRST: "pair_first", SECOND: "pair_second", LISTED: "pair_listed"}
"""The ways, and the words of each in the file of results."""
CELL_BPS = 100_000
"""On a slower link the heavy page takes minutes, and no user waits that long."""
FAST_MS, FAST_LOADS = 100, 5
"""On links with a shorter round trip, loads differ most by chance. So without boxes and with one box, at least as many
are made. A pair that starts for each load takes too long for that."""


def groups(repeats: int) -> list[Group]:
    """Uses beds of their own for the listed pair, because two pairs would listen on the same ports."""
    return [group for name in LINKS for group in (*_on(name, repeats), *_more_on(name, repeats))]


def _on(name: str, repeats: int) -> Iterator[Group]:
    on = link(name)
    is_cell = on.down_bps < CELL_BPS
    pages = ("cnn",) if is_cell else tuple(PAGES)
    for scheme, ways in itertools.product(SCHEMES, ((DIRECT, EDGE, FIRST, SECOND, *PEERS), (LISTED,))):
        group = Group(NAME, name, pages, (scheme,), ways, repeats, as_shipped=True)
        # A pair that stands caches objects of http pages, and each of its loads must be a first visit. Beds on cells
        # run side by side.
        yield from _apart(group) if is_cell or (scheme, ways) == ("http", (LISTED,)) else [group]


def _apart(group: Group) -> Iterator[Group]:
    """Yields a bed for each repeat."""
    for number in range(group.repeats):
        yield replace(group, repeats=1, first_repeat=group.first_repeat + number)


def _more_on(name: str, repeats: int) -> Iterator[Group]:
    """Yields more direct loads and more by one box where their ratio lies near 1 and loads differ by chance: on fast
    links, and over https on a cell."""
    on = link(name)
    first = repeats + 1
    if on.down_bps < CELL_BPS and repeats > 1:
        more = Group(NAME, name, ("cnn",), ("https",), (DIRECT, EDGE), MORE_LOADS - repeats, as_shipped=True)
        yield from _apart(replace(more, first_repeat=first))
    if on.rtt_ms < FAST_MS and repeats < FAST_LOADS:
        for scheme in SCHEMES:
            ways, left = (DIRECT, EDGE), FAST_LOADS - repeats
            yield Group(NAME, name, tuple(PAGES), (scheme,), ways, left, first_repeat=first, as_shipped=True)


FRONT_PAGE = Experiment(
    NAME,
    "The table of the front page",
    "Today's links and two pages: direct, one box, a pair on both days, and peers.",
    groups,
)


def rows(results: Results) -> list[dict[str, Any]]:
    """Returns one row for each link, page and scheme, in the order of the table. Without a complete load, a time is
    None."""
    found = []
    for name, words in LINKS.items():
        for page in PAGES:
            for scheme in SCHEMES:
                cells = {way: results.cell(name, page, scheme, way) for way in (*WAYS, *PEERS)}
                if cells[DIRECT]:
                    row = _row(link(name), words, page, scheme, cells)
                    found.append(row | _bounds(results.bound(name, page)))
    return found


def _row(on: Link, words: str, page: str, scheme: str, cells: dict[str, Cell | None]) -> dict[str, Any]:
    present = {way: cell for way, cell in cells.items() if cell}
    peers = {way: time for way in PEERS if (time := _ms(present.get(way)))}
    best = min(peers, key=lambda way: peers[way]) if peers else None
    return {
        "link": on.name,
        "link_words": words,
        "rtt_ms": on.rtt_ms,
        "down_mbit": on.down_bps / 1e6,
        "page": page,
        "page_words": PAGES[page],
        "scheme": scheme,
        **{f"{words}_ms": _ms(present.get(way)) for way, words in WAYS.items()},
        "best_peer": {"name": contender(best).title, "ms": peers[best]} if best else None,
        "loads": min(len(present[way].complete) for way in WAYS if way in present),
        "failed": sum(len(cell.failed) for cell in present.values()),
    }


def _bounds(least: Bound | None) -> dict[str, int | None]:
    return {
        "ideal_ms": round(least.ideal_ms) if least else None,
        "floor_ms": round(least.floor_ms) if least else None,
    }


def _ms(cell: Cell | None) -> int | None:
    """Returns the median load time."""
    middle = cell.load_ms if cell else None
    return round(middle.median) if middle else None


def document(text: dict[str, Any], machine: str, *, note: str, commit: str) -> dict[str, Any]:
    """Returns the committed file, made from an experiment's JSON."""
    weights = {page: Weight(**weight) for page, weight in text["weights"].items()}
    results = Results([run_from(run) for run in text["runs"]], weights)
    return {
        "command": f"sudo make results{' QUICK=1' if text['repeats'] == 1 else ''}",
        "commit": commit,
        "date": text["when"].split()[0],
        "machine": machine,
        "machine_note": note,
        "loads": text["repeats"],
        "about": (
            "Median load times in milliseconds, cold Chromium with https-first and QUIC on. A page over http is one of "
            "servers that refuse https. The pair has the files of `longhaul pair init`. On a first visit its boxes "
            "know nothing. On the second day both have restarted, the remote remembers names, and over http the "
            "ground has cached objects of the page. The listed pair has all names at `dns.domains`, and each of its "
            "loads is a first visit. `loads` of a row are those of each way."
        ),
        "rows": rows(results),
    }


def main(arguments: list[str]) -> int:
    """Writes the file. The argument is a note about the machine, for example other programs that ran on it."""
    source = scratch("experiments") / f"{NAME}.json"
    if not source.exists():
        print(f"{source} is missing: run `sudo make results`", file=sys.stderr)
        return 1
    written = document(json.loads(source.read_text()), machine_class(), note=" ".join(arguments), commit=built_commit())
    RESULTS.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(written, indent=1) + "\n")
    print(f"results: {RESULT}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
