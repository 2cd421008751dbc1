"""A pair with its interfaces and addresses. The quick start has the same ones."""

from __future__ import annotations

from .canvas import Canvas

PAGE = "docs/src/quick-start-pair.md"
SHIP, GROUND, RESOLVER, DEVICE = "192.0.2.1", "198.51.100.40", "203.0.113.53", "lan0"


def draw(page: str) -> Canvas:
    """Draws it. Raises ValueError if the page has other addresses."""
    for one in (SHIP, GROUND, RESOLVER, DEVICE, "8443", "4170"):
        if one not in page:
            raise ValueError(f"{PAGE} does not name {one}")
    out = Canvas(
        290,
        "A pair: clients behind a ship, a slow link, and a ground on the wired side, with interfaces, "
        "addresses and ports",
    )
    _part(out, 20, 70, 140, "clients", ["192.0.2.0/24", f"gateway {SHIP}", "nothing installed"], own=False)
    _part(
        out,
        235,
        50,
        190,
        "ship",
        [f"{DEVICE} {SHIP}", "53: names", "80, 443: pages", "4170: ssh, mail, chat", "role: remote"],
    )
    _part(
        out, 560, 50, 190, "ground", [GROUND, "8443: the pair", "needs a resolver,", f"here {RESOLVER}", "role: ground"]
    )
    _part(out, 818, 70, 128, "the web", ["www.example.org", "resolver", RESOLVER], own=False)
    out.path("M160 135H235", "blue", width=2)
    out.path("M750 135H818", "blue", width=2)
    out.path("M425 115H560", "orange", width=3, dash="7 5")
    out.text(492, 100, "slow link", ink="orange", size=14, bold=True, anchor="middle")
    out.lines(
        492, 140, ["the pipe: TLS", "connections", "to port 8443"], size=12, step=16, ink="orange", anchor="middle"
    )
    out.text(197, 125, "redirected", ink="muted", size=11, anchor="middle")
    out.path("M197 140V232H784V140", "edge", dash="2 5")
    out.text(
        492,
        254,
        "Everything else crosses ship and link as before: other ports, UDP, VPNs.",
        ink="muted",
        size=12,
        anchor="middle",
    )
    out.text(
        492, 273, "While the service at the ship is stopped, all connections do.", ink="muted", size=12, anchor="middle"
    )
    return out


def _part(out: Canvas, x: float, y: float, width: float, name: str, lines: list[str], *, own: bool = True) -> None:
    out.box(x, y, width, 152 if own else 130, "sky" if own else "panel", "blue" if own else "edge")
    out.text(x + width / 2, y + 24, name, size=15, bold=True, anchor="middle")
    out.lines(x + width / 2, y + 46, lines, step=19, anchor="middle")
