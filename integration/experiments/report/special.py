"""Sections of the experiments that are not page loads alone."""

from __future__ import annotations

import html
import statistics
from collections.abc import Callable
from typing import Any

from . import plots
from .figure import figure
from .published import CONNECTIONS, CONNECTIONS_WHY, FAIRNESS_WHY, IMAGES, MOBILITY_WHY


def _connections(text: dict[str, Any]) -> str:
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
    rows = "".join(
        f"<tr><td>{plots.title_of(name)}</td><td class=n>{connections:.0f}</td><td class=n>{queries:.0f}</td>"
        f"<td class=n>{_theirs(name, 0)}</td><td class=n>{_theirs(name, 1)}</td><td class=n>{incomplete:.0f}</td></tr>"
        for name, connections, queries, incomplete in zip(
            names, counted("connections"), counted("dns_queries"), counted("incomplete"), strict=True
        )
    )
    return (
        figure(plots.groups_of_bars([plots.title_of(name) for name in names], series, "for 100 pages"), "As figure 5.")
        + "<table><tr><th></th><th class=n>TCP connections</th><th class=n>DNS queries</th><th class=n>theirs: TCP</th>"
        f"<th class=n>theirs: DNS</th><th class=n>pages incomplete</th></tr>{rows}</table>"
        f"<p><b>Why they differ.</b> {CONNECTIONS_WHY}</p>"
    )


def _theirs(name: str, column: int) -> str:
    paper = CONNECTIONS.get(name)
    return f"about {paper[column]}" if paper else "–"


def _mobility(text: dict[str, Any]) -> str:
    """Section 5 of WWW 2004."""
    rows = "".join(
        f"<tr><td>{row['case']}</td><td>{html.escape(row['title'])}</td><td>{html.escape(row['how'])}</td>"
        f"<td class=n>{row['journeys']}</td><td class=n>{_broken(row)}</td>"
        f"<td class=n>{_seconds(row['load_ms'])}</td></tr>"
        for row in text.get("details", {}).get("rows", [])
    )
    return (
        "<table><tr><th>case</th><th>the client moves</th><th>url rewriting</th><th class=n>pages</th>"
        f"<th class=n>not whole</th><th class=n>load times, s</th></tr>{rows}</table><p>{MOBILITY_WHY}</p>"
    )


def _broken(row: dict[str, Any]) -> str:
    absent = html.escape(", ".join(row["absent"][:3]))
    return f"<span class=bad>{row['broken']}</span> {absent}" if row["broken"] else "0"


def _seconds(times_ms: list[float]) -> str:
    return ", ".join(f"{time / 1000:.1f}" for time in times_ms)


def _fairness(text: dict[str, Any]) -> str:
    """Sections III to V of MWCN 2002."""
    rows = "".join(
        f"<tr><td>{html.escape(row['sender'])}</td><td class=n>{row['queueing_p50_ms'] / 1000:.1f}</td>"
        f"<td class=n>{row['queueing_max_ms'] / 1000:.1f}</td><td class=n>{row['second_first_byte_s']:.1f}</td>"
        f"<td class=n>{row['first_s']:.1f}</td><td class=n>{row['second_s']:.1f}</td></tr>"
        for row in text.get("details", {}).get("rows", [])
    )
    return (
        "<h3>Two transfers, the second begun while the first runs</h3><table><tr><th>the gateway sends with</th>"
        "<th class=n>queueing, median s</th><th class=n>most, s</th><th class=n>second's first byte after, s</th>"
        f"<th class=n>first takes, s</th><th class=n>second takes, s</th></tr>{rows}</table><p>{FAIRNESS_WHY}</p>"
    )


def _one_flight(text: dict[str, Any]) -> str:
    """The pages of HTTPEP's figures 3 to 5, and how the pair does beside them."""
    rows = [row for row in text.get("details", {}).get("rows", []) if row["cache"] == "cold"]
    parts = []
    for link_name in dict.fromkeys(row["link"] for row in rows):
        own = {(row["contender"], row["page"]): row["load_ms"] for row in rows if row["link"] == link_name}
        names = list(dict.fromkeys(name for name, _ in own))
        heads = "".join(f"<th class=n>{plots.title_of(name)}, s</th>" for name in names)
        lines = "".join(
            f"<tr><td>{page}</td>"
            + "".join(f"<td class=n>{_median_s(own.get((name, page), []))}</td>" for name in names)
            + "</tr>"
            for page in dict.fromkeys(page for _, page in own)
        )
        parts.append(f"<h3>{html.escape(link_name)}</h3><table><tr><th>page</th>{heads}</tr>{lines}</table>")
        if paper := IMAGES.get(link_name):
            parts.append(
                f"<p>{paper.source}: {paper.theirs[0]:+.0f} % on the mean of its pages, without recompression. Ours: "
                f"{html.escape(_changes(own, names))}.</p>"
            )
    return "".join(parts)


def _median_s(times_ms: list[float]) -> str:
    return f"{statistics.median(times_ms) / 1000:.2f}" if times_ms else "–"


def _changes(own: dict[tuple[str, str], list[float]], names: list[str]) -> str:
    """The mean change of load time to direct over all pages, for everybody else."""
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


def _quic(text: dict[str, Any]) -> str:
    """What `split.udp443` changes for a browser that knows that an origin speaks HTTP/3."""
    ways = {"direct": "no pair", "pass": "udp443: pass", "refuse": "udp443: refuse"}
    rows = "".join(
        f"<tr><td>{html.escape(row['page'])}</td><td>{ways[row['way']]}</td>"
        f"<td class=n>{row['load_ms'] / 1000:.2f}</td><td class=n>{100 * row['over_http3']:.0f} %</td>"
        f"<td>{html.escape(', '.join(row['problems']))}</td></tr>"
        for row in text.get("details", {}).get("rows", [])
    )
    return (
        "<table><tr><th>page</th><th></th><th class=n>load time, s</th><th class=n>objects over HTTP/3</th><th></th>"
        f"</tr>{rows}</table><p>What goes over QUIC goes past the pair, end to end with the origin: no handshake is "
        "split, and nothing is opened ahead of need.</p>"
    )


SPECIAL_SECTIONS: dict[str, Callable[[dict[str, Any]], str]] = {
    "connections": _connections,
    "mobility": _mobility,
    "gprs": _fairness,
    "one-flight": _one_flight,
    "quic": _quic,
}
"""By experiment: a section made of its JSON."""
