"""The way of clients' packets through the rules of a ship. A test of `longhaul host` has the rules."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .canvas import Canvas

RULES = "envoy-config/longhaul/tests/host/ship.nft"
CHAIN = re.compile(r"chain (\w+) \{\s*type \w+ hook (\w+) priority (\w+);[^\n]*\n(.*?)\n\t\}", re.S)
REDIRECT = re.compile(r"(tcp|udp) dport (\d+|\{[^}]*\}) counter name to_\w+ redirect to :(\d+)")


@dataclass(frozen=True)
class Chain:
    """A chain of the table."""

    name: str
    hook: str
    priority: str
    rules: str


def chains(table: str) -> dict[str, Chain]:
    """Returns the chains of a table by their names."""
    return {found[0]: Chain(*found) for found in CHAIN.findall(table)}


def listeners(rules: str) -> list[tuple[str, str]]:
    """Returns the ports that are led to a listener, and its port."""
    found: dict[str, tuple[list[str], str]] = {}
    for protocol, ports, to in REDIRECT.findall(rules):
        found.setdefault(to, ([], ports))[0].append(protocol)
    return [(f"{' and '.join(protocols)} {ports.strip('{ }')}", to) for to, (protocols, ports) in found.items()]


def draw(table: str) -> Canvas:
    """Draws the path from the clients' interface to a listener, or through the ship."""
    by_name = chains(table)
    intercept, guard, last = by_name["intercept"], by_name["listeners"], by_name["arrived"]
    mark = re.search(r"meta mark (0x[0-9a-f]+) accept", intercept.rules)
    if mark is None:
        raise ValueError(f"{RULES} has no mark of packets that pass")
    led = listeners(intercept.rules)
    out = Canvas(560, "The path of clients' packets through the chains of the table inet longhaul on a ship")
    out.text(24, 36, "The path of a client's packet on the ship", size=17, bold=True)
    out.text(24, 58, "nft list table inet longhaul: three chains, and what each one decides", ink="muted")
    out.box(24, 92, 120, 64, "panel", "edge")
    out.lines(84, 120, ["from lan0", "new connection"], anchor="middle")
    out.path("M144 124H186", "edge", width=2, arrow=True)

    _chain(out, 190, 82, 380, 234, intercept)
    stays = [
        f"mark {mark[1]} (a captive portal's)",
        "an address of the ship itself",
        "a connection that began before the rules",
        "a private address, with a port of ssh or mail",
    ]
    out.text(206, 140, "These pass as they are:", bold=True)
    out.lines(222, 161, stays, step=19)
    out.text(206, 246, "Others go to a port of the ship:", bold=True)
    for row, (ports, to) in enumerate(led):
        words = ports if len(ports) < 18 else "ssh, mail and chat"
        out.text(222 + row % 2 * 160, 267 + row // 2 * 20, f"{words} → {to}")

    out.path("M380 316V352", "green", width=2, arrow=True)
    out.text(392, 338, "redirected", ink="green", bold=True)
    _chain(out, 190, 356, 380, 74, guard)
    out.text(206, 414, "From another interface than lan0 and lo: rejected.")
    out.path("M380 430V466", "green", width=2, arrow=True)
    _chain(out, 190, 470, 380, 66, last)
    out.text(206, 524, "Counts what got past every firewall.")
    out.path("M570 503H656", "green", width=2, arrow=True)
    out.box(660, 470, 276, 66, "sky", "blue")
    out.lines(798, 498, ["Envoy and CoreDNS,", "and over the pipe to the ground"], anchor="middle", step=20)

    out.path("M570 180H656", "edge", width=2, arrow=True)
    out.text(613, 170, "accepted", anchor="middle", ink="muted", bold=True)
    out.box(660, 82, 276, 196, "panel", "edge")
    out.text(676, 108, "forwarded by the kernel", bold=True, size=14)
    out.lines(
        676,
        134,
        [
            "UDP apart from names:",
            "QUIC, games and calls",
            "VPNs, ping, other TCP ports",
            "all connections, while the service",
            "is stopped and the table is gone",
        ],
        step=22,
    )
    out.text(676, 262, "Your firewall's chain forward decides.", ink="muted", size=12)
    out.box(660, 356, 276, 74, "sand", "orange")
    out.lines(
        676,
        383,
        ["Your firewall's chain input comes", "between these. If it drops port 80,", "clients get no page."],
        step=18,
    )
    out.path("M660 393H578", "orange", width=1.5, dash="4 4", arrow=True)
    return out


def _chain(out: Canvas, x: float, y: float, width: float, height: float, chain: Chain) -> None:
    out.box(x, y, width, height, "lilac", "violet")
    out.text(x + 16, y + 30, f"chain {chain.name}", bold=True, size=14, ink="violet")
    out.text(x + width - 16, y + 30, f"{chain.hook}, priority {chain.priority}", anchor="end", size=12, ink="muted")
