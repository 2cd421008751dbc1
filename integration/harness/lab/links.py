"""The links, read from the emulator's own profiles: the computed link is the emulated one."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache

from harness.host.artifacts import REPOSITORY

FOLDER = REPOSITORY / "integration" / "link" / "profiles"

TCP_PAYLOAD_SHARE = 1448 / 1500
"""The share of a full packet that TCP with timestamps leaves for its payload."""


@dataclass(frozen=True)
class Link:
    """A link by its profile, and the settings that Longhaul's operator writes for it."""

    name: str
    title: str
    source: str
    rtt_ms: float
    down_bps: int
    up_bps: int

    @property
    def payload_bytes_per_ms(self) -> float:
        """The most bytes of content that reach the client in a millisecond."""
        return self.down_bps / 8 / 1000 * TCP_PAYLOAD_SHARE

    @property
    def setting(self) -> dict[str, str]:
        """The section `link` of longhaul.yaml."""
        return {"rtt": f"{self.rtt_ms:g}ms", "down": _rate(self.down_bps), "up": _rate(self.up_bps)}

    @property
    def weight(self) -> int:
        """The share of CAPACITY that one bed on this link takes. A slow link leaves a browser idle."""
        for below_bps, weight in ((100_000, 1), (1_000_000, 2), (50_000_000, 4)):
            if self.down_bps < below_bps:
                return weight
        return CAPACITY


CAPACITY = 8
"""The largest sum of the weights of beds that run side by side."""


@cache
def link(name: str) -> Link:
    """A link by its profile's name."""
    profile = tomllib.loads((FOLDER / f"{name}.toml").read_text())
    down, up = profile["down"], profile["up"]
    return Link(
        name, profile["title"], " ".join(profile["source"].split()),
        down["delay_ms"] + up["delay_ms"], down["rate_bps"], up["rate_bps"],
    )  # fmt: skip


def _rate(bps: int) -> str:
    if bps % 1_000_000 == 0:
        return f"{bps // 1_000_000}mbit"
    return f"{bps / 1000:g}kbit"
