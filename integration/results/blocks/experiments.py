"""The tables of experiments: some in the page of the test bed, one that compares ways, and all in EXPERIMENTS.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from . import field
from .text import figure, joined, measured, number, share

PROFILES = Path(__file__).resolve().parents[2] / "link" / "profiles"

TODAY_ROWS = {
    "geo": ("geo", ("cnn", "median-2025"), ("http", "https")),
    "maritime": ("maritime", ("cnn",), ("http", "https")),
    "rural LTE": ("rural-lte", ("cnn", "median-2025"), ("http", "https")),
    "low orbit": ("leo", ("cnn", "median-2025"), ("http", "https")),
    "average cell": ("cdma-average", ("cnn",), ("https",)),
    "congested cell": ("cdma-congested", ("cnn",), ("https",)),
}
"""The link, the pages and the schemes of each group of rows."""
BYTES_ROWS = {
    "direct": "direct",
    "Squid with ziproxy": "ziproxy-squid",
    "one box": "longhaul-edge",
    "pair, text in gzip, images whole": "longhaul-pair-gzip",
    "the same with br": "longhaul-pair-br",
    "the same with differences alone": "longhaul-pair-deltas",
    "the same with smaller images alone": "longhaul-pair-images",
    "pair with its defaults, all three": "longhaul-pair-default",
}
"""The contender of each row."""
FLIGHT_ROWS = {
    "pair that has seen nothing": "pair_{}_vs_direct",
    "the next visitor of the same pair": "pair_later_{}_vs_direct",
    "pair without bundling": "pair_without_bundling_{}_vs_direct",
    "plain HTTP/2 pair": "plain_pair_{}_vs_direct",
    "pair that has seen nothing, to the floor": "pair_{}_vs_floor",
    "edge at level full": "edge_{}_vs_direct",
    "bytes of a revisit, to those without bundling": "revisit_{}_bytes_vs_no_bundling",
    "page's first byte, ms more than without bundling": "page_first_byte_added_ms_{}",
}
"""The figure of each row, with a place for the page."""
FLIGHT_PAGES = {"cnn": "cnn", "heavy page": "modern"}
WAYS_ROWS = {
    "Squid, transparent": ("today", "squid-transparent"),
    "Squid, which browsers name as their proxy": ("front-page", "squid-explicit"),
    "HAProxy, which passes TCP": ("today", "haproxy"),
    "a plain pair of Envoys": ("front-page", "envoy-pair"),
    "Longhaul, one box": ("front-page", "longhaul-edge"),
    "Longhaul, a pair, first visit": ("front-page", "longhaul-pair-first-visit"),
    "Longhaul, a pair, second day": ("front-page", "longhaul-pair-second-day"),
    "Longhaul, a pair with a list of names": ("front-page", "longhaul-pair-default"),
}
"""The experiment and the contender of each row."""
WAYS_PAGES = {"light page": "cnn", "heavy page": "median-2025"}

RATIO = re.compile(r"(?P<place>.+?)_(?P<scheme>https?)_(?P<contender>.+?)(_(?P<visit>warm|second))?_ratio_to_direct")
"""The name of a ratio, as `experiments.results` makes it."""
VISITS = {"": "", "warm": ", again", "second": ", second page"}


def today_block(results: dict) -> str:
    """One line a link and page, with the schemes side by side, and the origin of the figures."""
    lines = ["| link | page | edge | pair | pair, first visit | direct, s |", "|---|---|---|---|---|---|"]
    for words, (link, pages, schemes) in TODAY_ROWS.items():
        for page in pages:
            ways = [
                " / ".join(share(figure(results, link, page, one, way, "ratio_to_direct")) for one in schemes)
                for way in ("longhaul-edge", "longhaul-pair")
            ]
            ways.append(first_visits(results, link, page, schemes))
            times = [figure(results, link, page, one, "direct", "load_ms") / 1000 for one in schemes]
            cells = [words, f"{page} over {' / '.join(schemes)}", *ways, " / ".join(f"{time:.1f}" for time in times)]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", measured("today", results)])


def first_visits(results: dict, link: str, page: str, schemes: tuple[str, ...]) -> str:
    """The first visits of a page, which are measured on links with a long round trip alone."""
    names = [joined(link, page, one, "longhaul-pair-first-visit", "ratio_to_direct") for one in schemes]
    found = [results["figures"].get(name) for name in names]
    return " / ".join("-" if one is None else share(one) for one in found) if any(found) else "-"


def bytes_block(results: dict) -> str:
    """The bytes and the load time of two pages of a site, by contender, and the origin of the figures."""
    lines = ["| | first page, kB | s | second page, kB | s |", "|---|---|---|---|---|"]
    for words, contender in BYTES_ROWS.items():
        cells = []
        for visit in ((), ("second",)):
            stem = ("cdma-average", "cnn", "http", contender, *visit)
            cells.append(f"{figure(results, *stem, 'bytes_down') / 1000:.0f}")
            cells.append(f"{figure(results, *stem, 'load_ms') / 1000:.1f}")
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", measured("bytes", results)])


def flight_block(results: dict) -> str:
    """The effect of bundling on two pages, and the origin of the figures."""
    lines = [f"| | {' | '.join(FLIGHT_PAGES)} |", f"|---|{'---|' * len(FLIGHT_PAGES)}"]
    for words, name in FLIGHT_ROWS.items():
        cells = [f"{number(figure(results, name.format(short)))}" for short in FLIGHT_PAGES.values()]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", measured("one-flight", results)])


def ways_block(runs: dict[str, dict]) -> str:
    """The load times of two pages over a geostationary link, by the way that they take.

    A contender without figures was not installed where the experiment ran. One that does not carry a scheme has figures
    of the other."""
    cases = [(words, page, scheme) for scheme in ("http", "https") for words, page in WAYS_PAGES.items()]
    lines = [f"| | {' | '.join(f'{words}, {scheme}' for words, _, scheme in cases)} |", f"|---|{'---|' * len(cases)}"]
    for words, (experiment, contender) in WAYS_ROWS.items():
        names = [joined("geo", page, scheme, contender, "ratio_to_direct") for _, page, scheme in cases]
        figures = [runs[experiment]["figures"].get(name) for name in names]
        none = "not at all" if any(figures) else "not measured"
        lines.append(f"| {words} | {' | '.join(none if one is None else share(one) for one in figures)} |")
    return "\n".join([*lines, "", *(measured(name, runs[name]) for name in ("front-page", "today"))])


@dataclass(frozen=True)
class Ratio:
    """One contender's load time as a share of the direct one."""

    link: str
    page: str
    scheme: str
    contender: str
    visit: str
    value: float
    direct_ms: float


def ratios(results: dict) -> list[Ratio]:
    """The ratios of an experiment, read from the names of its figures. Raises ValueError for an unknown link."""
    links = sorted((path.stem for path in PROFILES.glob("*.toml")), key=len, reverse=True)
    found = []
    for name, value in results["figures"].items():
        if (parts := RATIO.fullmatch(name)) is None:
            continue
        place, scheme, contender, visit = parts.group("place", "scheme", "contender", "visit")
        link = next((one for one in links if place.startswith(f"{joined(one)}_")), None)
        if link is None:
            raise ValueError(f"the figure {name} begins with no link of {PROFILES.name}")
        page, contender = (text.replace("_", "-") for text in (place.removeprefix(f"{joined(link)}_"), contender))
        direct_ms = figure(results, place, scheme, "direct", *([visit] if visit else []), "load_ms")
        found.append(Ratio(link, page, scheme, contender, visit or "", value, direct_ms))
    return found


def ratio_table(found: list[Ratio]) -> list[str]:
    """One line a link, page and scheme; one column a contender, peers first."""
    others = sorted({one.contender for one in found} - {"direct"}, key=lambda name: ("longhaul" in name, name))
    lines = [f"| link | page | | direct, s | {' | '.join(others)} |", f"|---|---|---|---|{'---|' * len(others)}"]
    rows: dict[tuple[str, ...], dict[str, Ratio]] = {}
    for one in found:
        rows.setdefault((one.link, one.page, one.scheme, one.visit), {})[one.contender] = one
    for (link, page, scheme, visit), by_contender in sorted(rows.items()):
        cells = [share(by_contender[name].value) if name in by_contender else "" for name in others]
        direct_s = next(iter(by_contender.values())).direct_ms / 1000
        name = f"{page}{VISITS[visit]}"
        lines.append(f"| {link} | {name} | {scheme} | {direct_s:.1f} | {' | '.join(cells)} |")
    return lines


def all_block(runs: dict[str, dict]) -> str:
    """Every experiment: the ratios of its loads, its own figures, and their origin."""
    parts = []
    for name, run in runs.items():
        parts.append(f"## `{name}`")
        if "cells" in run:
            parts.append(field.experiment_block(run))
            continue
        if found := ratios(run):
            parts.append("\n".join(ratio_table(found)))
        if own := {key: value for key, value in run.get("own", {}).items() if value}:
            rows = [f"| `{key}` | {number(value)} |" for key, value in own.items()]
            parts.append("\n".join(["| figure | |", "|---|---|", *rows]))
        parts.append(measured(name, run))
    return "\n\n".join(parts)
