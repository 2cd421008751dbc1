"""URLs of a page before and after one box. A test of the filter has the page."""

from __future__ import annotations

import re
from typing import Any

from .canvas import Canvas

CASE = "filters/url-rewrite/url-rewriting/tests/cases/guide"
URL = re.compile(r'(?:href|src)="([^"]*)"')
WORDS = {
    "moved": "moves",
    "integrity": "stays: it has an integrity hash",
    "same_host": "stays: it is on the page's own host",
}
PLACES = {"link href": "style sheet", "img src": "image", "script src": "script"}
PAGE_HOST = "www.example.org"
TOP, ROW = 100, 34


def draw(case: dict[str, Any], before: str, after: str) -> Canvas:
    """Draws each URL with its fate, and the hosts that a browser connects to."""
    olds, news = URL.findall(before), URL.findall(after)
    rows = list(zip(case["urls"], olds, news, strict=True))
    bottom = TOP + len(rows) * ROW
    most = max(len(_connected(rows, at)) for at in (1, 2))
    out = Canvas(
        bottom + 60 + (most + 1) // 2 * 38,
        "The URLs of a page before and after one box, and the hosts that a browser connects to",
    )
    out.text(24, 34, f"What moves in a page of http://{PAGE_HOST}/ at one box", size=17, bold=True)
    for x, words in ((24, "object"), (130, "its URL as the site wrote it"), (430, "in the page that the browser gets")):
        out.text(x, TOP - 24, words, ink="muted", bold=True)
    out.path(f"M24 {TOP - 12}H936", "edge", width=1)
    for number, ((place, _, fate), old, new) in enumerate(rows):
        y = TOP + number * ROW
        moved = fate == "moved"
        if moved:
            out.box(418, y - 8, 520, 28, "mint", radius=4)
        out.text(24, y + 11, PLACES[place])
        out.text(130, y + 11, old.removeprefix("http://"), mono=True, size=12)
        out.text(
            430,
            y + 11,
            new.removeprefix("http://") if moved else WORDS[fate],
            mono=moved,
            size=12 if moved else 13,
            ink="green" if moved else "muted",
        )
    _hosts(out, bottom + 30, 24, "before", _connected(rows, 1), "orange", "sand")
    _hosts(out, bottom + 30, 500, "after", _connected(rows, 2), "green", "mint")
    return out


def _connected(rows: list[Any], at: int) -> list[str]:
    """The hosts of the page and of its objects."""
    hosts = [row[at].split("/")[2] for row in rows if "//" in row[at]]
    return list(dict.fromkeys([PAGE_HOST, *hosts]))


def _hosts(out: Canvas, y: float, x: float, when: str, hosts: list[str], ink: str, fill: str) -> None:
    out.text(x, y, f"{when}: {len(hosts)} hosts, each with handshakes", bold=True, ink=ink)
    for number, host in enumerate(hosts):
        at_x, at_y = x + number % 2 * 200, y + 16 + number // 2 * 38
        out.box(at_x, at_y, 188, 28, fill, ink, radius=4)
        out.text(at_x + 94, at_y + 19, host, anchor="middle", size=12, mono=True)
