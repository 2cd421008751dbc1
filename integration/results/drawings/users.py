"""The time of a page on a ship against what others do on its link, without Longhaul and by a pair."""

from __future__ import annotations

from typing import Any

from .canvas import WIDTH, Canvas

LINK = "maritime"
ROWS = (
    ("idle", "page", "nobody else"),
    ("one-https-download", "page", "one download"),
    ("four-https-downloads", "page", "four downloads"),
    ("users-5", "page, p50", "5 users"),
    ("users-15", "page, p50", "15 users"),
)
WAYS = (("direct", "without Longhaul", "edge"), ("quick-start", "a pair", "blue"))
COLOURS = {way: colour for way, _, colour in WAYS}
TOP, ROW, BAR, LABELS, RIGHT = 104, 54, 18, 150, 70
SLOW = "page, p95"


def draw(kept: dict[str, Any]) -> Canvas:
    """Draws one panel a scheme."""
    cells = {
        (one["scenario"], one["scheme"], one["what"], one["way"]): one for one in kept["cells"] if one["link"] == LINK
    }
    bottom = TOP + len(ROWS) * ROW
    out = Canvas(bottom + 70, "Times of a page on a ship's link, against what others do on it")
    out.text(24, 34, "A light page on a ship's link: 2 Mbit/s, round trips of 700 ms", size=17, bold=True)
    out.text(24, 58, "A bar is the median. A thin line ends at the slowest page of twenty.", ink="muted")
    shown = {scenario for scenario, _, _ in ROWS}
    longest = max([one["seconds"] or 0 for key, one in cells.items() if key[0] in shown and key[3] in COLOURS] or [1])
    panel = (WIDTH - LABELS - 48) / 2
    for number, (_, _, words) in enumerate(ROWS):
        out.text(LABELS + 10, TOP + number * ROW + 24, words, anchor="end", size=14)
    for at, scheme in enumerate(("http", "https")):
        left = LABELS + 24 + at * panel
        scale = (panel - RIGHT) / longest
        out.text(left, TOP - 18, f"over {scheme}", bold=True, size=14)
        for second in range(0, int(longest) + 1, _step(longest)):
            x = left + second * scale
            out.path(f"M{x:.1f} {TOP - 6}V{bottom}", "edge", width=0.5, dash="2 4")
            out.text(x, bottom + 16, f"{second} s", ink="muted", size=12, anchor="middle")
        for number, (scenario, what, _) in enumerate(ROWS):
            for line, (way, _, colour) in enumerate(WAYS):
                y = TOP + number * ROW + line * (BAR + 2)
                slow = cells.get((scenario, scheme, SLOW, way))
                _bar(out, left, y, scale, cells.get((scenario, scheme, what, way)), slow, colour)
    x = 24.0
    for _, words, colour in WAYS:
        out.box(x, bottom + 38, 14, 14, colour, radius=3)
        out.text(x + 20, bottom + 50, words, size=13)
        x += 60 + 7 * len(words)
    said = f"make experiments ONLY=field, {kept['date']}"
    out.text(WIDTH - 34, bottom + 50, said, ink="muted", size=12, anchor="end")
    return out


def _step(longest: float) -> int:
    """The seconds between two lines: a round number, with at most six lines."""
    return next((step for step in (1, 2, 5, 10, 20, 50) if longest / step <= 6), 100)


def _bar(
    out: Canvas, x: float, y: float, scale: float, cell: dict[str, Any] | None, slow: dict[str, Any] | None, colour: str
) -> None:
    """One bar. A cell that says nothing has words in its place."""
    if cell is None or cell["seconds"] is None or cell["verdict"] == "unclear":
        words = "not measured" if cell is None else "never" if cell["seconds"] is None else "the loads do not decide"
        out.text(x + 4, y + 13, words, ink="muted", size=12)
        return
    width = cell["seconds"] * scale
    out.box(x, y, width, BAR, colour, radius=3)
    end = width
    if slow and slow["seconds"]:
        end = slow["seconds"] * scale
        out.path(f"M{x + width:.1f} {y + BAR / 2}H{x + end:.1f}", colour)
    out.text(x + end + 6, y + 13, f"{cell['seconds']:.1f} s", size=12)
