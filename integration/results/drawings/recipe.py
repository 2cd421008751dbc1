"""Which recipe of the guide fits. Each result is a heading of a page."""

from __future__ import annotations

from .canvas import Canvas

GATEWAYS = "Gateway recipes"
QUESTIONS = (
    # question, word that leads to a result, result, a fact of it, word that leads on
    (
        ["Is there a machine at the", "clients' end of the link?"],
        "no",
        "Rural cellular",
        ["one box on the wired side"],
        "yes: a pair",
    ),
    (
        ["Does a ground have an address", "that the remote reaches?"],
        "no",
        "A ground that nobody can reach",
        ["a WireGuard tunnel to the remote"],
        "yes",
    ),
    (
        ["Does the remote move, with", "other addresses each hour?"],
        "yes",
        "An aircraft",
        ["no QUIC, a limit of connections"],
        "no",
    ),
    (["Are round trips below", "100 ms?"], "yes", "Low orbit", ["a gain of tenths of a second"], "no"),
    (
        ["Does the link break, or has", "the box a second route?"],
        "yes",
        "A ship",
        ["direct while the ground is down"],
        "no",
    ),
)
LAST = ("Quick start: a pair", ["as it stands there"])


def draw(headings: set[str]) -> Canvas:
    """Draws it. Raises ValueError if a page has no such heading."""
    for name in [result for _, _, result, _, _ in QUESTIONS] + [LAST[0]]:
        if name not in headings:
            raise ValueError(f"the guide has no heading {name!r}")
    step = 92
    out = Canvas(96 + step * len(QUESTIONS) + 80, "Questions that lead to the recipe which fits")
    out.text(24, 36, "Which recipe fits?", size=17, bold=True)
    out.text(24, 58, "Begin at the top. Every recipe begins with a quick start.", ink="muted")
    for number, (question, turn, result, fact, on) in enumerate(QUESTIONS):
        y = 82 + number * step
        out.box(24, y, 330, 58, "panel", "edge")
        out.lines(189, y + 25, question, anchor="middle", step=19, size=14)
        out.path(f"M354 {y + 29}H556", "green", width=2, arrow=True)
        out.text(455, y + 21, turn, anchor="middle", bold=True, ink="green")
        _result(out, 560, y, result, fact)
        out.path(f"M189 {y + 58}V{y + step - 3}", "edge", width=2, arrow=True)
        out.text(202, y + 80, on, ink="muted", bold=True)
    _result(out, 24, 82 + step * len(QUESTIONS), *LAST, width=330)
    y = 82 + step * len(QUESTIONS)
    out.text(560, y + 22, f"{GATEWAYS} also has several client interfaces,", ink="muted")
    out.text(560, y + 41, "other firewalls, and captive portals.", ink="muted")
    return out


def _result(out: Canvas, x: float, y: float, name: str, fact: list[str], width: float = 370) -> None:
    out.box(x, y, width, 58, "sky", "blue")
    out.text(x + width / 2, y + 25, name, bold=True, size=15, anchor="middle", ink="blue")
    out.lines(x + width / 2, y + 45, fact, anchor="middle", ink="muted")
