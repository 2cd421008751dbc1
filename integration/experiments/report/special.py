"""Sections of the experiments that are more than page loads."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from . import plots
from .blocks import Bad, Block, Heading, Plot, Row, Table, Text
from .published import CONNECTIONS, CONNECTIONS_WHY, FAIRNESS_WHY, FEC_WHY, IMAGES, MOBILITY_WHY, NEXT_PAGE_WHY


def _connections(text: dict[str, Any]) -> list[Block]:
    """Figure 5 of WWW 2004."""
    figures = text["figures"]
    names = text.get("details", {}).get("contenders", [])

    def counted(what: str) -> list[float]:
        return [figures[f"hundred_pages_{name.replace('-', '_')}_{what}"] for name in names]

    series = {
        "TCP connections": (plots.OURS, counted("connections")),
        "DNS queries": (plots.PEER, counted("dns_queries")),
        "names asked for": (plots.GREY, counted("names_asked_for")),
    }
    heads = ["", "TCP connections", "DNS queries", "theirs: TCP", "theirs: DNS", "pages incomplete"]
    rows = [
        Row([plots.title_of(name), f"{connections:.0f}", f"{queries:.0f}", _theirs(name, 0), _theirs(name, 1),
             f"{incomplete:.0f}"])
        for name, connections, queries, incomplete in zip(
            names, counted("connections"), counted("dns_queries"), counted("incomplete"), strict=True
        )
    ]  # fmt: skip
    bars = plots.groups_of_bars([plots.title_of(name) for name in names], series, "for 100 pages")
    return [Plot(bars, "As figure 5."), Table(heads, rows), Text(CONNECTIONS_WHY, lead="Why they differ.")]


def _theirs(name: str, column: int) -> str:
    paper = CONNECTIONS.get(name)
    return f"about {paper[column]}" if paper else "–"


def _mobility(text: dict[str, Any]) -> list[Block]:
    """Section 5 of WWW 2004."""
    heads = ["case", "the client moves", "url rewriting", "pages", "not whole", "load times, s"]
    rows = [
        Row([row["case"], row["title"], row["how"], str(row["journeys"]), _broken(row), _seconds(row["load_ms"])])
        for row in text.get("details", {}).get("rows", [])
    ]
    return [Table(heads, rows, words=(0, 1, 2)), Text(MOBILITY_WHY)]


def _broken(row: dict[str, Any]) -> str | Bad:
    return Bad(str(row["broken"]), ", ".join(row["absent"][:3])) if row["broken"] else "0"


def _seconds(times_ms: list[float]) -> str:
    return ", ".join(f"{time / 1000:.1f}" for time in times_ms)


def _fairness(text: dict[str, Any]) -> list[Block]:
    """Sections III to V of MWCN 2002."""
    heads = [
        "the gateway sends with", "queueing, median s", "most, s", "second's first byte after, s", "first takes, s",
        "second takes, s",
    ]  # fmt: skip
    rows = [
        Row([row["sender"], f"{row['queueing_p50_ms'] / 1000:.1f}", f"{row['queueing_max_ms'] / 1000:.1f}",
             *(f"{row[key]:.1f}" for key in ("second_first_byte_s", "first_s", "second_s"))])
        for row in text.get("details", {}).get("rows", [])
    ]  # fmt: skip
    title = Heading("Two transfers, the second begun while the first runs")
    return [title, Table(heads, rows), Text(FAIRNESS_WHY)]


def _one_flight(text: dict[str, Any]) -> list[Block]:
    """The pages of HTTPEP's figures 3 to 5, and the pair's results beside them."""
    rows = [row for row in text.get("details", {}).get("rows", []) if row["cache"] == "cold"]
    parts: list[Block] = []
    for link_name in dict.fromkeys(row["link"] for row in rows):
        own = {(row["contender"], row["page"]): row["load_ms"] for row in rows if row["link"] == link_name}
        names = list(dict.fromkeys(name for name, _ in own))
        heads = ["page", *(f"{plots.title_of(name)}, s" for name in names)]
        lines = [
            Row([page, *(_median_s(own.get((name, page), [])) for name in names)])
            for page in dict.fromkeys(page for _, page in own)
        ]
        parts += [Heading(link_name), Table(heads, lines)]
        if paper := IMAGES.get(link_name):
            said = f"{paper.theirs[0]:+.0f} % on the mean of its pages, without recompression"
            parts.append(Text(f"{paper.source}: {said}. Ours: {_changes(own, names)}."))
    return parts


def _median_s(times_ms: list[float]) -> str:
    return f"{statistics.median(times_ms) / 1000:.2f}" if times_ms else "–"


def _changes(own: dict[tuple[str, str], list[float]], names: list[str]) -> str:
    """Returns the mean change of load time over all pages relative to direct, for each other contender."""
    said = []
    for name in names:
        pairs = [
            (statistics.median(times), statistics.median(own["direct", page]))
            for (who, page), times in own.items()
            if who == name != "direct" and times and own.get(("direct", page))
        ]
        if pairs:
            mean = statistics.mean(ours / direct - 1 for ours, direct in pairs)
            said.append(f"{plots.title_of(name)} {100 * mean:+.0f} %")
    return ", ".join(said)


def _quic(text: dict[str, Any]) -> list[Block]:
    """The effect of `split.udp443` on a browser that knows that an origin supports HTTP/3."""
    ways = {"direct": "no pair", "pass": "udp443: pass", "refuse": "udp443: refuse"}
    heads = ["page", "", "load time, s", "objects over HTTP/3", ""]
    rows = [
        Row([row["page"], ways[row["way"]], f"{row['load_ms'] / 1000:.2f}", f"{100 * row['over_http3']:.0f} %",
             ", ".join(row["problems"])])
        for row in text.get("details", {}).get("rows", [])
    ]  # fmt: skip
    about = (
        "What goes over QUIC goes past the pair, end to end with the origin: no handshake is split, and nothing is "
        "opened ahead of need."
    )
    return [Table(heads, rows, words=(0, 1, 4)), Text(about)]


def _field(text: dict[str, Any]) -> list[Block]:
    """Every cell of the links as they are."""
    heads = ["link", "beside", "", "value", "way", "loads", "failed", "s", "worst, s", "to direct", "spread", ""]
    rows = [
        Row([cell["link"], cell["words"], cell["scheme"], cell["what"], cell["way"], str(cell["loads"]),
             str(cell["failed"]), _number(cell["seconds"]), _number(cell["worst_s"]), _number(cell["ratio"]),
             "" if cell["ratio"] is None else f"{cell['low']:.2f}–{cell['high']:.2f}",
             Bad(cell["verdict"]) if cell["verdict"] in ("slower", "failed") else cell["verdict"]])
        for cell in text.get("details", {}).get("cells", [])
    ]  # fmt: skip
    about = "A spread is that of nine of ten ratios of loads drawn again. One that includes 1.02 hides the verdict."
    return [Table(heads, rows, words=(0, 1, 2, 3, 4, 11)), Text(about)]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _fec(text: dict[str, Any]) -> list[Block]:
    """The link layer of MobiCom 2004."""
    heads = ["channel", "damaged bytes", "best parity", "page with it, s", "page without parity, s"]
    rows = [
        Row([row["channel"], f"{100 * row['damaged']:g} %", f"{100 * row['parity']:.1f} %",
             f"{row['best_ms'] / 1000:.0f}", f"{row['without_ms'] / 1000:.0f}"])
        for row in text.get("details", {}).get("rows", [])
    ]  # fmt: skip
    adaptive = text["figures"]["fec_adaptive_to_fixed"]
    adaptive_words = f"Parity that follows a changing channel takes {adaptive:.3f} of the best fixed one. "
    return [Table(heads, rows), Text(adaptive_words + FEC_WHY)]


def _next_page(text: dict[str, Any]) -> list[Block]:
    """Client prefetching of Gomez et al."""
    heads = ["exponent of the links' power law", "pages ready", "saved a page, ms", "unrequested bytes a page"]
    rows = [
        Row([f"{row['exponent']:g}", f"{100 * row['ready_share']:.0f} %", f"{row['saved_ms']:.0f}",
             f"{row['wasted_bytes']:.0f}"])
        for row in text.get("details", {}).get("rows", [])
    ]  # fmt: skip
    return [Table(heads, rows), Text(NEXT_PAGE_WHY)]


SPECIAL_SECTIONS: dict[str, Callable[[dict[str, Any]], list[Block]]] = {
    "connections": _connections,
    "field": _field,
    "mobility": _mobility,
    "gprs": _fairness,
    "one-flight": _one_flight,
    "quic": _quic,
    "fec": _fec,
    "next-page": _next_page,
}
"""By experiment: a section made of its JSON."""
