"""The status page with numbers at its parts. The page's template has their headings."""

from __future__ import annotations

import math
import re

from .canvas import Canvas

TEMPLATE = "envoy-config/observe/src/status/page/status.html.j2"
HEADING = re.compile(r'<h2 id="(\w+)">([^<]+)</h2>')
PLACES = (
    ("Clients", "2 active"),
    ("Remote (here)", "works"),
    ("Link", "620 ms"),
    ("Ground", "works"),
    ("Origins", "210 ms"),
)
PARTS = (
    ("round trip of the link", "600 ms", 0.6),
    ("queue in front of the link", "331 ms", 0.33),
    ("resolver", "12 ms", 0.02),
)
NOTES = (
    "The first line is the problem, if one stands.",
    "A light at each part: ok, slow, broken, no traffic yet, not reached.",
    "A part that takes more time than normal, and what to do.",
    "A bar is a minute. A shaded minute had a problem.",
    "An estimate, since midnight in UTC.",
    "The bytes of each group, if you have groups.",
    "Each problem with its begin and duration.",
    "Parts of the time of a new request.",
)


def draw(template: str) -> Canvas:
    """Draws it. Raises KeyError if the page has lost a heading."""
    titles = dict(HEADING.findall(template))
    out = Canvas(
        690,
        "The status page, with numbers: the state, the path of a request, causes, use of the link, savings, "
        "shares, problems and parts",
    )
    out.box(24, 20, 580, 650, "paper", "edge")
    out.text(44, 50, "ship: Longhaul remote", size=17, bold=True)
    out.box(44, 64, 540, 32, "sand", radius=4)
    out.text(60, 85, "The queue in front of the link takes more time than normal.", bold=True)
    _path(out)
    out.text(44, 216, titles["causes"], bold=True, size=14)
    out.text(44, 237, "The queue in front of the link: 33 % of a new request, 331 ms")
    out.text(44, 256, "Something beside Longhaul fills the link: longhaul measure.", ink="muted")
    _hour(out, titles["hour"])
    out.text(412, 290, titles["saved"], bold=True, size=14)
    for row, (figure, words) in enumerate(
        (("1834", "round trips of the link"), ("61 MB", "bytes on the link"), ("702", "responses from the cache"))
    ):
        out.text(450, 314 + row * 22, figure, bold=True, ink="blue", size=12, anchor="end")
        out.text(458, 314 + row * 22, words, size=11)
    out.text(44, 424, titles["shares"], bold=True, size=14)
    for row, (name, share, said) in enumerate((("bridge", 0.34, "410 MB"), ("crew", 1.0, "1.2 GB"))):
        out.text(44, 446 + row * 22, name)
        out.box(110, 437 + row * 22, 390, 10, "panel", radius=5)
        out.box(110, 437 + row * 22, 390 * share, 10, "blue", radius=5)
        out.text(584, 446 + row * 22, said, anchor="end")
    out.text(44, 508, titles["problems"], bold=True, size=14)
    out.lines(
        44,
        530,
        ["2026-11-28 14:02   2 min 10 s   the ground does not respond: nothing comes back", "over the link"],
        size=12,
    )
    out.text(44, 580, titles["parts"], bold=True, size=14)
    for row, (name, time, share) in enumerate(PARTS):
        out.text(44, 602 + row * 22, name)
        out.box(280, 593 + row * 22, 220 * share, 10, "orange" if row == 1 else "blue", radius=5)
        out.text(584, 602 + row * 22, time, anchor="end")
    places = ((24, 80), (24, 128), (24, 211), (24, 285), (392, 285), (24, 419), (24, 503), (24, 575))
    out.text(640, 50, "What it shows", size=17, bold=True)
    y = 92
    for number, (words, (at_x, at_y)) in enumerate(zip(NOTES, places, strict=True), 1):
        out.badge(at_x, at_y, number)
        out.badge(651, y, number)
        lines = _wrapped(words)
        out.lines(674, y + 5, lines, step=18)
        y += 26 + 18 * len(lines)
    out.lines(
        640,
        y + 12,
        [
            "Below it stand tables of the link, the",
            "groups, the pair, certificates, traffic, DNS",
            "and the configuration.",
        ],
        ink="muted",
    )
    return out


def _wrapped(words: str, most: int = 38) -> list[str]:
    lines = [""]
    for word in words.split():
        if len(lines[-1]) + len(word) >= most:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def _path(out: Canvas) -> None:
    for number, (name, fact) in enumerate(PLACES):
        x = 96 + number * 109
        if number:
            out.path(f"M{x - 92} 128H{x - 17}", "edge", width=2)
        slow = name == "Link"
        out.dot(x, 128, 14, "orange" if slow else "green")
        if slow:
            out.path(f"M{x} 121V130M{x} 134V135", "paper", width=2.5)
        else:
            out.path(f"M{x - 6} 128l4.5 4.5l8 -9", "paper", width=2.5)
        out.text(x, 161, name, anchor="middle", bold=True, size=12)
        out.text(x, 178, "slow" if slow else "ok", anchor="middle", size=12)
        out.text(x, 193, fact, anchor="middle", size=11, ink="muted")


def _hour(out: Canvas, title: str) -> None:
    out.text(44, 290, title, bold=True, size=14)
    for row, words in enumerate(("To clients", "From clients")):
        base = 346 + row * 46
        out.text(44, base - 24, words, size=11, ink="muted")
        out.box(251, base - 32, 13, 32, "sand", radius=0)
        for minute in range(60):
            high = (20, 9)[row] * (0.55 + 0.45 * math.sin(minute / 7 + row * 2)) * (0.6 if minute % 5 == 0 else 1)
            high = 0 if 33 <= minute <= 35 else max(high, 1)
            out.shape(f"M{120 + minute * 4} {base}v{-high:.1f}h3v{high:.1f}z", "blue")
