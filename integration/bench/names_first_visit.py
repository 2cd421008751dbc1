"""Pages over https on a geostationary link by a pair without a list: the first visit, and the one of the next day.

Each round loads a page directly, by a pair whose boxes have just started and know no name, and by the same pair after a
night (`harness.lab.contenders.init_pair`). Each load has a new browser, with https-first and QUIC on. Nothing is looked
up and no server is reached by a pair before the first load.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.lab.bed import LinkBed, standing
from harness.lab.contenders.base import LinkContender
from harness.lab.contenders.direct import Direct
from harness.lab.contenders.init_pair import FirstVisit, SecondDay
from harness.lab.links import link
from harness.lab.measure import Run
from harness.lab.measure import measure as load
from harness.lab.pages import Page, make_page
from harness.lab.tables import page_table
from harness.results.figures import at_most, ratio, table

LINK, SCHEME = "geo", "https"
PAGES = {"light": "cnn", "heavy": "median-2025"}
BOUNDS = {"first_visit": {"light": 0.69, "heavy": 0.57}, "second_day": {"light": 0.47, "heavy": 0.39}}
TARGETS = [at_most(f"{what}_{page}", bound) for what, bounds in BOUNDS.items() for page, bound in bounds.items()]
ROUNDS, QUICK_ROUNDS = 3, 1
QUICK_PAGES = ["light"]
LIMIT_S = 90
"""After this time, a page counts as broken."""
DIRECT, FIRST, SECOND = "direct", "first_visit", "second_day"
WAYS: dict[str, LinkContender] = {DIRECT: Direct(), FIRST: FirstVisit(), SECOND: SecondDay()}
"""The loads of a round, in their order. The second day takes the state of the first visit."""


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Loads both pages in rounds. Returns the ratios, and all loads."""
    runs, wanted = rounds(folder, WAYS, quick=quick)
    for size in PAGES.keys() - wanted:
        print(f"no figure of the {size} page: a quick run does not load it", flush=True)
    return figures_of(runs, wanted), [{**run.as_dict(), "steps": []} for run in runs]


def rounds(folder: Path, ways: Mapping[str, LinkContender], *, quick: bool) -> tuple[list[Run], list[str]]:
    """Loads the pages by all ways in turns, and prints the loads. Returns them, and the sizes of the pages."""
    wanted = QUICK_PAGES if quick else list(PAGES)
    pages = [make_page(page_table(PAGES[size])) for size in wanted]
    runs: list[Run] = []
    with standing(folder, link(LINK), pages, list(ways.values()), seed=1, weighed=False, as_shipped=True) as bed:
        for number in range(QUICK_ROUNDS if quick else ROUNDS):
            for page in pages:
                runs += [visit(bed, page, name, way, number) for name, way in ways.items()]
    print(rows(runs, ways), flush=True)
    return runs, wanted


def visit(bed: LinkBed, page: Page, name: str, way: LinkContender, number: int) -> Run:
    """Loads a page by one way, in a new browser."""
    template = Run("names", LINK, page.name, SCHEME, name, number + 1)
    (run,) = load(bed.track, page, way, template, warm=False, timeout_s=LIMIT_S)
    check_way(run, len(page.hosts))
    told = f"{run.load_ms:.0f} ms" if run.complete else run.problem
    print(f"{page.name}, {name}, round {run.repeat}: {told}", flush=True)
    return run


def check_way(run: Run, hosts: int) -> None:
    """Raises unless the names of a page crossed the link as datagrams directly, and none did by a pair."""
    if run.complete and (run.dns_queries < hosts if run.contender == DIRECT else run.dns_queries):
        raise RuntimeError(f"{run.contender}: {run.dns_queries} queries of {hosts} hosts crossed the link as datagrams")


def figures_of(runs: list[Run], sizes: list[str]) -> dict[str, float | None]:
    """Returns the ratio of each way to the direct loads, round by round. The pages that were not loaded have none."""
    figures: dict[str, float | None] = {f"{way}_{size}": None for way in (FIRST, SECOND) for size in PAGES}
    for name, way, size in [(f"{way}_{size}", way, size) for way in (FIRST, SECOND) for size in sizes]:
        pairs = [pair for pair in rounds_of(runs, PAGES[size], way) if all(run.complete for run in pair)]
        if pairs:
            ours, theirs = ([one.load_ms for one in loads] for loads in zip(*pairs, strict=True))
            figures[name] = ratio(ours, theirs)
        else:
            print(f"{name}: no round has two whole loads", flush=True)
    return figures


def rounds_of(runs: list[Run], page: str, way: str) -> Iterator[tuple[Run, Run]]:
    """Yields the load by a way and the direct one of each round."""
    by_place = {(run.page, run.contender, run.repeat): run for run in runs}
    for number in sorted({run.repeat for run in runs}):
        yield by_place[page, way, number], by_place[page, DIRECT, number]


def rows(runs: list[Run], ways: Iterable[str]) -> str:
    """Returns the table of medians."""
    lines = [["medians", "ms", "lowest", "highest", "TCP over the link", "kB down", "loads not whole"]]
    for page in dict.fromkeys(run.page for run in runs):
        for way in ways:
            every = [run for run in runs if (run.page, run.contender) == (page, way)]
            whole = [run for run in every if run.complete]
            if not whole:
                lines.append([f"{page}, {way}", *["-"] * 5, str(len(every))])
                continue
            times = [run.load_ms for run in whole]
            cells = [f"{value:.0f}" for value in (statistics.median(times), min(times), max(times))]
            connections = statistics.median(run.connections for run in whole)
            kilobytes = statistics.median(run.bytes_down for run in whole) / 1000
            cells += [f"{connections:.0f}", f"{kilobytes:.0f}", str(len(every) - len(whole))]
            lines.append([f"{page}, {way}", *cells])
    return table(lines)
