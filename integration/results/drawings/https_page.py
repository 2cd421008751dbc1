"""The time line of a page over https: directly, by one box, and by a pair on two days."""

from __future__ import annotations

from typing import Any

from .canvas import WIDTH, Canvas

LEFT, RIGHT, TOP, ROW = 170, 926, 92, 58
STEPS = {"lookup": "violet", "TCP": "blue", "TLS": "green", "request": "orange"}
WAYS = (
    ("without Longhaul", "direct_ms", tuple(STEPS)),
    ("one box", "edge_ms", tuple(STEPS)),
    ("a pair, first visit", "pair_first_ms", ("lookup", "TLS", "request")),
    ("a pair, second day", "pair_second_ms", ("TLS", "request")),
)
"""Each step takes a round trip of the link. The ship of a pair ends the handshake of TCP, and remembers names."""


def draw(kept: dict[str, Any]) -> Canvas:
    """Draws the heavy page on the geostationary link."""
    [row] = [
        one for one in kept["rows"] if (one["link"], one["page"], one["scheme"]) == ("geo", "median-2025", "https")
    ]
    longest = max(row[key] for _, key, _ in WAYS)
    scale = (RIGHT - 60 - LEFT) / longest
    bottom = TOP + len(WAYS) * ROW
    out = Canvas(
        bottom + 96, "The time of a page over https on a satellite link: steps to its first byte, and its load time"
    )
    out.text(24, 34, f"A page over https, by a satellite with round trips of {row['rtt_ms']} ms", size=17, bold=True)
    out.text(
        24,
        58,
        "Each coloured block is one round trip of the link before the page's first byte. "
        "The grey bar ends when the page is loaded.",
        ink="muted",
    )
    for second in range(0, int(longest / 1000) + 1, 2):
        x = LEFT + second * 1000 * scale
        out.path(f"M{x:.1f} {TOP - 8}V{bottom}", "edge", width=0.5, dash="2 4")
        out.text(x, bottom + 18, f"{second} s", ink="muted", size=12, anchor="middle")
    for number, (name, key, steps) in enumerate(WAYS):
        y = TOP + number * ROW
        out.text(LEFT - 14, y + 25, name, anchor="end", bold=True, size=14)
        out.box(LEFT, y + 4, row[key] * scale, 32, "panel", "edge", radius=3)
        for at, step in enumerate(steps):
            out.box(LEFT + at * row["rtt_ms"] * scale, y + 4, row["rtt_ms"] * scale - 1.5, 32, STEPS[step], radius=3)
        out.text(LEFT + row[key] * scale + 10, y + 26, f"{row[key] / 1000:.1f} s", bold=True, size=15)
    y, x = bottom + 46, float(LEFT)
    for step, colour in STEPS.items():
        out.box(x, y - 11, 14, 14, colour, radius=3)
        words = {"lookup": "lookup of the name", "TCP": "handshake of TCP", "TLS": "handshake of TLS"}.get(step, step)
        out.text(x + 20, y, words, size=13)
        x += 40 + 7.2 * len(words)
    out.text(x, y, "then: 13 more hosts, objects", size=13, ink="muted")
    out.text(
        WIDTH - 34,
        y + 30,
        f"Load times: {kept['command']}, {kept['date']}, the median home page of 2025 on 14 hosts",
        ink="muted",
        size=12,
        anchor="end",
    )
    return out
