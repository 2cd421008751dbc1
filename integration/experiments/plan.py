"""The plan of a run: groups of loads that share a bed, and the expected time of each."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from harness.lab.contenders import contender
from harness.lab.contenders.init_pair import FirstVisit, SecondDay
from harness.lab.ideal import ideal_ms
from harness.lab.links import CAPACITY, Link, link
from harness.lab.measure import Run

BROWSER_MS = 1800
"""The time between loads, with the start and end of a browser. It is not part of any figure."""
POOL_BYTES = 500_000
"""The bytes with which the pair replaces the connections that a page used. The next load waits until the link is
quiet."""
START_MS = 13_000
"""The time in which the boxes of a contender start and stop that starts for each load."""
BED_MS = 9000
"""The time to set up a bed and take it down."""
SLOW_BPS, SLOW_RATIO, FAST_RATIO = 10_000_000, 1.5, 3.0
"""Load times relative to the ideal, as a first estimate for links up to a rate and above. The progress bar corrects
it."""


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
    """Contenders with a second load from a warm cache."""
    seconds: tuple[str, ...] = ()
    """Pages from which each visitor goes on to a second page of the site."""
    as_shipped: bool = False
    """Browsers have https-first and QUIC on, as users have them. So an http page is one of servers without https, in a
    bed without https pages."""
    pictures: bool = False
    """The report shows each page as the first browser of each contender showed it."""
    first_repeat: int = 1
    special: str = ""
    """The name in `specials` of an experiment that is more than page loads."""
    special_ms: float = 0.0
    """The expected time of that experiment."""
    special_watches: int = 0
    """Inotify instances that it needs beside those of the contenders."""
    runs_alone: bool = False
    """No other bed runs beside it, because it fills the machine by itself."""
    scenario: str = ""
    """The part of that experiment that this bed is for."""
    rank: int = 0
    """Beds of a lower rank start first."""

    @property
    def bed(self) -> str:
        """Returns the name of a bed. The results of a special experiment have it."""
        return " ".join([self.special or self.experiment, self.link_name, self.scenario, *self.pages, *self.contenders])

    @property
    def link(self) -> Link:
        """Returns its link."""
        return link(self.link_name)

    @property
    def weight(self) -> int:
        """Returns the part of `CAPACITY` that a bed takes."""
        return CAPACITY if self.runs_alone else self.link.weight

    def turns(self, seed: int) -> Iterator[Run]:
        """Yields every load in order. Contenders take turns in a new random order each time, so that drift affects all
        of them."""
        if self.special:
            return
        draw = random.Random(f"{seed} {self.experiment} {self.link_name} {self.pages} {self.first_repeat}")
        for repeat in range(self.first_repeat, self.first_repeat + self.repeats):
            for page in self.pages:
                for scheme in self.schemes:
                    order = list(self.contenders)
                    draw.shuffle(order)
                    _put_first_visit_first(order)
                    for name in order:
                        yield Run(self.experiment, self.link_name, page, scheme, name, repeat)

    def expected_ms(self, turn: Run) -> float:
        """Returns the expected time of one turn."""
        ideal = ideal_ms(turn.page, self.link)
        again = (turn.contender in self.warm) + (turn.page in self.seconds)
        warm = again * (ideal * 0.5 + self.link.rtt_ms)
        ratio = SLOW_RATIO if self.link.down_bps < SLOW_BPS else FAST_RATIO
        starts = not contender(turn.contender).tried
        refill = POOL_BYTES / self.link.payload_bytes_per_ms if starts or turn.contender == "longhaul-pair" else 0
        return BROWSER_MS + starts * START_MS + refill + ratio * ideal + self.link.rtt_ms + warm

    def expected_total_ms(self) -> float:
        """Returns the expected time of the group."""
        return BED_MS + self.special_ms + sum(self.expected_ms(turn) for turn in self.turns(0))


def matching(groups: Iterable[Group], pattern: str) -> list[Group]:
    """Returns the groups whose beds have a name like `field geo users-*`."""
    return [group for group in groups if fnmatchcase(group.bed, pattern)]


def _put_first_visit_first(order: list[str]) -> None:
    """A second day takes the state that a first visit left. If it came first, it would have to make that visit."""
    both = (FirstVisit.name, SecondDay.name)
    if set(both) <= set(order):
        places = sorted(order.index(name) for name in both)
        order[places[0]], order[places[1]] = both
