"""A sender's effect on a queue and on a second transfer over GPRS: default TCP, BBR, a clamped window (MWCN 2002).

The gateway sends two transfers of the same size. The second begins when the first has reached its steady state. The
figures are the second one's wait for its first byte, the shares of the rate, and the time that packets spend in the
queue.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.clients.commands import Curl
from harness.host.waiting import wait_for
from harness.lab.bed import standing, use_congestion_control
from harness.lab.contenders import contender
from harness.lab.pages import make_page
from harness.lab.tables import page_table

from ..plan import Group

BDP_SEGMENTS = 4
"""33.2 kbit/s for 1000 ms are 4.2 kB, or three full segments. One more keeps the link busy."""

LOSS_BASED = ("cubic", "reno")
"""The run uses whichever the kernel permits."""

SENDERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "loss-based": (LOSS_BASED, ()),
    "bbr": (("bbr",), ()),
    "clamped": (LOSS_BASED, ("initcwnd", str(BDP_SEGMENTS), "cwnd", "lock", str(BDP_SEGMENTS))),
}
"""Congestion control and options of the client route, by name."""


@dataclass
class Transfer:
    """One download by curl, in its own thread."""

    curl: Curl
    url: str
    first_byte_s: float = 0.0
    seconds: float = 0.0

    def run(self) -> None:
        """Downloads the whole response."""
        began_s = time.monotonic()
        parts = self.curl.stream(self.url, timeout_s=300.0)
        self.seconds = time.monotonic() - began_s
        self.first_byte_s = self.seconds - parts[-1][0] if parts else 0.0


def fairness(folder: Path, group: Group, seed: int) -> dict[str, Any]:
    """Measures every sender, one after the other."""
    page = make_page(page_table(group.pages[0]))
    split = contender("split-tcp")
    figures: dict[str, float] = {}
    rows = []
    with standing(folder, group.link, [page], [split], seed=seed) as bed:
        track = bed.track
        link = track.line.link
        assert link
        curl = Curl(folder, track.line.clients)
        for name, (wanted, route) in SENDERS.items():
            congestion_control = use_congestion_control(track.line, *wanted)
            with split.engaged(track):
                track.line.set_client_route(*route)
                link.reset()
                first, second = (Transfer(curl, page.url("http")) for _ in range(2))
                threads = [threading.Thread(target=one.run) for one in (first, second)]
                threads[0].start()
                wait_for(
                    "the first transfer's steady state",
                    lambda: link.statistics()["down"]["delivered"]["bytes"] > page.table.html_bytes / 2,
                    60.0,
                    0.2,
                )
                threads[1].start()
                for thread in threads:
                    thread.join()
                counted = link.statistics()["down"]
                track.line.set_client_route()
            stem = f"fairness_{name.replace('-', '_')}"
            row = {
                "sender": f"{name}, {congestion_control}" if name != congestion_control else name,
                "queueing_p50_ms": counted["queueing"]["p50_ms"],
                "queueing_max_ms": counted["queueing"]["max_ms"],
                "second_first_byte_s": second.first_byte_s,
                "first_s": first.seconds,
                "second_s": second.seconds,
            }
            rows.append(row)
            figures |= {f"{stem}_{key}": round(value, 2) for key, value in row.items() if isinstance(value, float)}
    return {"figures": figures, "rows": rows}
