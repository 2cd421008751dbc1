"""What is to be run: groups of loads that share a bed, and how long they are likely to take."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from harness.lab.ideal import ideal_ms
from harness.lab.links import Link, link
from harness.lab.measure import Run

BROWSER_MS = 1800
"""A browser's start, its end, and what lies between: not part of any figure."""
POOL_BYTES = 500_000
"""What the pair opens again after a page that took its connections: the next load waits until the link is quiet."""
BED_MS = 9000
"""A bed's setting up and taking down."""
SLOW_BPS, SLOW_RATIO, FAST_RATIO = 1_000_000, 1.4, 3.0
"""Load times over ideal, as a first guess for links up to a rate and above; the progress bar learns better."""


@dataclass(frozen=True)
class Group:
    """Loads of some pages on one link by some contenders, interleaved, in one bed."""

    experiment: str
    link_name: str
    pages: tuple[str, ...]
    schemes: tuple[str, ...]
    contenders: tuple[str, ...]
    repeats: int
    warm: tuple[str, ...] = ()
    """Contenders of whom a second load with a warm cache is wanted."""
    https_contenders: tuple[str, ...] | None = None
    """Who takes part over https, where that differs."""
    first_repeat: int = 1
    special: str = ""
    """Something else than page loads: what of `specials` to run."""
    special_ms: float = 0.0
    """How long that is likely to take."""
    special_watches: int = 0
    """Inotify instances of what stands there beside the contenders."""

    @property
    def link(self) -> Link:
        """Its link."""
        return link(self.link_name)

    def taking_part(self, scheme: str) -> tuple[str, ...]:
        """Who takes part over a scheme."""
        return self.https_contenders if scheme == "https" and self.https_contenders is not None else self.contenders

    def everybody(self) -> list[str]:
        """Who takes part in anything."""
        return list(dict.fromkeys(name for scheme in self.schemes for name in self.taking_part(scheme)))

    def turns(self, seed: int) -> Iterator[Run]:
        """Every load, in order: contenders take turns, in an order drawn anew each time, so that drift meets all."""
        if self.special:
            return
        draw = random.Random(f"{seed} {self.experiment} {self.link_name} {self.pages} {self.first_repeat}")
        for repeat in range(self.first_repeat, self.first_repeat + self.repeats):
            for page in self.pages:
                for scheme in self.schemes:
                    order = list(self.taking_part(scheme))
                    draw.shuffle(order)
                    for name in order:
                        yield Run(self.experiment, self.link_name, page, scheme, name, repeat)

    def expected_ms(self, turn: Run) -> float:
        """How long one turn is likely to take."""
        ideal = ideal_ms(turn.page, self.link)
        warm = ideal * 0.5 + self.link.rtt_ms if turn.contender in self.warm else 0
        ratio = SLOW_RATIO if self.link.down_bps < SLOW_BPS else FAST_RATIO
        refill = POOL_BYTES / self.link.payload_bytes_per_ms if turn.contender == "longhaul-pair" else 0
        return BROWSER_MS + refill + ratio * ideal + self.link.rtt_ms + warm

    def expected_total_ms(self) -> float:
        """How long the group is likely to take."""
        return BED_MS + self.special_ms + sum(self.expected_ms(turn) for turn in self.turns(0))
