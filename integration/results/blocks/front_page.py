"""The table of pages on links, its short form in README.md, and the film strip."""

from __future__ import annotations

from .text import origin, rate, seconds, share

SHORT_WAYS = {"edge": "one box", "pair_first": "pair, first visit", "pair_second": "pair, second day"}
WAYS = SHORT_WAYS | {"pair_listed": "listed pair"}
"""The ways beside the direct one, and the head of each column."""
SCHEMES = ("https", "http")
SHORT = ("geo", "maritime", "rural-lte")
"""The links of the short table."""
SHORT_PAGE = "median-2025"


def cell(row: dict | None, way: str) -> str:
    """A way's share of the direct time."""
    if row is None or not row["direct_ms"] or not row[f"{way}_ms"]:
        return "-"
    return share(row[f"{way}_ms"] / row["direct_ms"])


def direct(row: dict | None) -> str:
    """The time without Longhaul."""
    return f"{row['direct_ms'] / 1000:.1f} s" if row and row["direct_ms"] else "-"


def peer(row: dict | None) -> str:
    """The best peer's share of the direct time."""
    if row is None or not row["direct_ms"] or not row["best_peer"]:
        return "-"
    return f"{row['best_peer']['ms'] / row['direct_ms']:.2f}"


def head(before: list[str], ways: dict[str, str], after: list[str]) -> list[str]:
    """The first two lines of a table: over each scheme, the direct time and the shares of it."""
    cells = [*before, *(text for one in SCHEMES for text in (f"{one} direct", "peer", *ways.values())), *after]
    return [f"| {' | '.join(cells)} |", f"|{'---|' * len(cells)}"]


def times(row: dict | None, ways: dict[str, str]) -> list[str]:
    """The direct time over one scheme, and the shares of it."""
    return [direct(row), peer(row), *(cell(row, way) for way in ways)]


def table(rows: list[dict]) -> list[str]:
    """One line a link and page: over https and over http the direct time, and the shares of it; then the bounds."""
    by_key = {(row["link"], row["page"], row["scheme"]): row for row in rows}
    lines = head(["link", "page"], WAYS, ["ideal", "floor"])
    for link, page in dict.fromkeys((row["link"], row["page"]) for row in rows):
        schemes = [by_key.get((link, page, scheme)) for scheme in SCHEMES]
        one = next(row for row in schemes if row)
        cells = [text for row in schemes for text in times(row, WAYS)]
        cells += [seconds(one["ideal_ms"]), seconds(one["floor_ms"])]
        name = f"{one['link_words']}, {one['rtt_ms']:g} ms, {rate(one['down_mbit'])}"
        lines.append(f"| {name} | {one['page_words']} | {' | '.join(cells)} |")
    return lines


def short_table(rows: list[dict]) -> list[str]:
    """One line for each link of the short table."""
    by_key = {(row["link"], row["scheme"]): row for row in rows if row["page"] == SHORT_PAGE}
    lines = head(["link"], SHORT_WAYS, [])
    for link in SHORT:
        schemes = [by_key[link, scheme] for scheme in SCHEMES]
        cells = [text for row in schemes for text in times(row, SHORT_WAYS)]
        name = f"{schemes[0]['link_words']}, {schemes[0]['rtt_ms']:g} ms, {rate(schemes[0]['down_mbit'])}"
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def peers(rows: list[dict]) -> str:
    """The peers of the table."""
    names = sorted({row["best_peer"]["name"] for row in rows if row["best_peer"]})
    return f"The best peer: {' or '.join(names)}." if names else ""


def source(results: dict) -> str:
    """The origin of the front page's figures."""
    return origin(results["command"], results, [row["loads"] for row in results["rows"]], results["machine_note"])


def table_block(results: dict) -> str:
    """The table, the best peer and the origin of the figures."""
    parts = ["\n".join(table(results["rows"])), peers(results["rows"]), source(results)]
    return "\n\n".join(part for part in parts if part)


def short_block(results: dict) -> str:
    """The short table, the best peer and the origin of the figures."""
    parts = ["\n".join(short_table(results["rows"])), peers(results["rows"]), source(results)]
    return "\n\n".join(part for part in parts if part)


def strip_block(results: dict) -> str:
    """The picture, with its content in words."""
    ways = ", ".join(
        f"{one['way'][0].lower()}{one['way'][1:]} {one['load_ms'] / 1000:.1f} s" for one in results["shown"]
    )
    return f"![Film strip of a {results['page']} that loads over a satellite: {ways}]({results['picture']})"


def heavy(rows: list[dict], link: str) -> dict[str, dict]:
    """The rows of the heavy page on a link, by schemes."""
    return {row["scheme"]: row for row in rows if (row["link"], row["page"]) == (link, SHORT_PAGE)}


def gain_block(results: dict) -> str:
    """The gain of a pair and of one box on the geostationary link, over https."""
    row = heavy(results["rows"], "geo")["https"]
    first, second, one_box = (cell(row, way) for way in ("pair_first", "pair_second", "edge"))
    return (
        f"Over an emulated geostationary link, a pair loads the median home page over https in {first} of the\n"
        f"time without Longhaul. From the second day on, it knows the names of the page, and takes {second}. "
        f"One box takes {one_box}."
    )


def fast_links_block(results: dict) -> str:
    """The part of the direct time that a pair takes on links where it gains little."""
    lines = ["| link | https direct | a pair | http direct | a pair |", "|---|---|---|---|---|"]
    for link in ("rural-lte", "leo"):
        rows = heavy(results["rows"], link)
        cells = [text for one in SCHEMES for text in (direct(rows[one]), span(rows[one]))]
        lines.append(f"| {rows['http']['link_words']}, {rows['http']['rtt_ms']:g} ms | {' | '.join(cells)} |")
    return "\n".join(
        [*lines, "", "Parts of the direct time, on the second day and on a first visit, for the median home page."]
    )


def span(row: dict) -> str:
    """The parts of the direct time that a pair takes on its two days."""
    low, high = sorted((row["pair_first_ms"], row["pair_second_ms"]))
    return f"{low / row['direct_ms']:.2f} to {high / row['direct_ms']:.2f}"


def box_on_lte_block(results: dict) -> str:
    """The part of the direct time that one box takes on LTE, over all pages and schemes."""
    parts = [row["edge_ms"] / row["direct_ms"] for row in results["rows"] if row["link"] == "rural-lte"]
    return f"On LTE one box takes {min(parts):.2f} to {max(parts):.2f} of the direct time, so it gains nothing there."
