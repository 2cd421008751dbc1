"""The plan of the experiment `field`: its scenarios, its links and its beds. The most wanted beds come first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from harness.lab import watches
from harness.lab.ideal import ideal_ms
from harness.lab.links import CAPACITY, Link, link
from harness.lab.neighbour_loads import AFTER_S, BEFORE_S, HEAD_START_S, PATIENCE_S
from harness.lab.neighbours import FAIR_QUEUE, QUICK_START
from harness.lab.peers import SPLIT_TCP, WIREGUARD

from ..plan import BED_MS, SLOW_RATIO, Group

NAME = "field"
SCHEMES = ("http", "https")
DIRECT, CUBIC, PAIR = "direct", "direct-cubic", QUICK_START
WAYS = {
    DIRECT: "direct", CUBIC: "direct, cubic", FAIR_QUEUE: "direct, fair queue", WIREGUARD: "WireGuard",
    SPLIT_TCP: "HAProxy, split TCP", PAIR: "pair",
}  # fmt: skip
"""The ways, and the words of each in tables. Origins have BBR but for `direct-cubic`."""
PEERS = (FAIR_QUEUE, WIREGUARD, SPLIT_TCP)
"""The ways that an operator could pick instead of a pair."""
FIRST_LINKS, LINKS = ("maritime", "geo"), ("maritime", "geo", "rural-lte", "leo")
"""Links are measured in this order. The rules of the project hold on the first ones."""
CHANGES = {
    "leo": {"handover": '{ every_s = 15, gap_ms = [50, 200], extra_delay_ms = [0, 17], kind = "drop" }'},
}
"""Parts of a link that its profile leaves out. A terminal changes its satellite each 15 s."""
FEWEST, MOST_AGAIN = 5, 2
"""The loads of a whole run, and how many times as many are made where the spread of some hides a verdict."""
OUTAGES = 3
"""An outage takes a minute and a half, so a whole run has fewer of them."""
CROWD_S, QUICK_CROWD_S = 150, 60
CROWDED_BPS = 4_000_000
"""Above this rate, three ways with fifteen users or four downloads each take all of two cores, and pages wait."""
PAGE = "cnn"
"""The page of the experiments that is most like the one that is loaded here."""


class Measures(StrEnum):
    """The value of one load."""

    PAGE = "page"
    """Seconds of one page."""
    CROWD = "crowd"
    """Seconds of all pages of several users."""
    BROWSER = "browser"
    """Seconds of the pages of one user in Chromium beside others."""
    OUTAGE = "outage"
    """Seconds from the link's return to the first response."""


TIMED = (Measures.CROWD, Measures.BROWSER)
"""One load has as many pages as its time allows."""


class Bulk(StrEnum):
    """The traffic of another client."""

    HTTP = "http"
    HTTPS = "https"
    UPLOAD = "upload"


@dataclass(frozen=True)
class Scenario:
    """One row of each link."""

    name: str
    words: str
    """Its words in tables."""
    measures: Measures = Measures.PAGE
    bulk: Bulk | None = None
    streams: int = 0
    """The downloads or uploads of `bulk`."""
    users: int = 0
    outage_s: int = 0
    changes: tuple[tuple[str, str], ...] = ()
    """Changes of the emulated link."""
    rates: float = 1.0
    """The rates that `link:` states, as a part of the true ones."""
    cubic: bool = False
    """Origins with CUBIC take part, too."""
    peers: bool = False
    """Peers that are programs take part, too. Five ways with fifteen users each would fill two cores."""
    weight: int = 3
    """Scenarios of a lower one are measured first."""

    @property
    def is_shared(self) -> bool:
        """Returns true if a page has others beside it."""
        return self.streams > 0 or self.users > 0

    def stated(self, on: Link) -> dict[str, str]:
        """Returns the section `link` of both boxes."""
        down_bps, up_bps = (round(bps * self.rates, -3) for bps in (on.down_bps, on.up_bps))
        return replace(on, down_bps=int(down_bps), up_bps=int(up_bps)).setting

    def emulated(self, on: Link) -> dict[str, str]:
        """Returns the changes of the emulated link."""
        return CHANGES.get(on.name, {}) | dict(self.changes)

    def ways(self, on: Link) -> tuple[str, ...]:
        """Returns the ways, which take turns. A crowd in which each way takes time of its own has no further peers."""
        has_peers = self.peers and (not self.users or is_side_by_side(self, on))
        return (
            DIRECT,
            *([CUBIC] if self.cubic else []),
            *([FAIR_QUEUE] if self.is_shared else []),
            *([WIREGUARD, SPLIT_TCP] if has_peers else []),
            PAIR,
        )


def _loss(part: str) -> tuple[tuple[str, str], ...]:
    return tuple((f"{way}.random_loss", part) for way in ("down", "up"))


BURSTS = "{ enter_bad = 0.002, leave_bad = 0.2, loss_in_bad = 1.0 }"
"""One percent of packets, five in a row on average."""

SCENARIOS: dict[str, Scenario] = {
    one.name: one
    for one in (
        Scenario("idle", "nobody else", cubic=True, peers=True, weight=0),
        Scenario("one-http-download", "one http download", bulk=Bulk.HTTP, streams=1, weight=4),
        Scenario("one-https-download", "one https download", bulk=Bulk.HTTPS, streams=1, weight=1),
        Scenario("four-http-downloads", "four http downloads", bulk=Bulk.HTTP, streams=4, peers=True,
                 weight=1),
        Scenario("four-https-downloads", "four https downloads", bulk=Bulk.HTTPS, streams=4, peers=True,
                 weight=0),
        Scenario("one-upload", "one https upload", bulk=Bulk.UPLOAD, streams=1, peers=True, weight=1),
        Scenario("loss-0.1", "loss of 0.1 %", changes=_loss("0.001"), cubic=True),
        Scenario("loss-1", "loss of 1 %", changes=_loss("0.01"), cubic=True, peers=True, weight=1),
        Scenario("loss-3", "loss of 3 %", changes=_loss("0.03"), cubic=True),
        Scenario("loss-bursts", "loss of 1 % in bursts", cubic=True,
                 changes=tuple((f"{way}.burst_loss", BURSTS) for way in ("down", "up"))),
        Scenario("outage-20s", "after an outage of 20 s", Measures.OUTAGE, outage_s=20, weight=2),
        Scenario("outage-40s", "after an outage of 40 s", Measures.OUTAGE, outage_s=40, weight=4),
        Scenario("users-5", "5 users", Measures.CROWD, users=5, peers=True, weight=1),
        Scenario("users-15", "15 users", Measures.CROWD, users=15, weight=0),
        Scenario("browser-15", "Chromium beside 14 users", Measures.BROWSER, users=15, weight=1),
        Scenario("rates-3x", "four https downloads, `link` states 3 times the rates", bulk=Bulk.HTTPS, streams=4,
                 rates=3.0),
        Scenario("rates-third", "four https downloads, `link` states a third of the rates", bulk=Bulk.HTTPS, streams=4,
                 rates=1 / 3),
    )
}  # fmt: skip
"""By name, in the order of tables."""


def loads(scenario: Scenario, repeats: int) -> int:
    """Returns the loads of each way and scheme, before any is made again. One repeat is a taste."""
    if repeats == 1 or scenario.measures in TIMED:
        return 1
    return OUTAGES if scenario.measures is Measures.OUTAGE else max(repeats, FEWEST)


def most_loads(scenario: Scenario, repeats: int) -> int:
    """Returns the most loads of each way and scheme. A crowd has many pages, and takes too long for a second one."""
    once = loads(scenario, repeats)
    return once * MOST_AGAIN if repeats > 1 and scenario.measures is Measures.PAGE else once


def is_side_by_side(scenario: Scenario, on: Link) -> bool:
    """Returns true if the ways of a load run at the same time. A busy link that is fast fills the machine by itself."""
    return on.weight < CAPACITY and not (scenario.is_shared and on.down_bps > CROWDED_BPS)


def crowd_s(repeats: int) -> int:
    """Returns the time of a crowd."""
    return QUICK_CROWD_S if repeats == 1 else CROWD_S


def groups(repeats: int) -> list[Group]:
    """Returns a bed for each link and scenario. The most wanted ones come first."""
    return [
        Group(
            NAME, name, (), SCHEMES, (), repeats,
            special=NAME, scenario=one.name, special_ms=_expected_ms(one, link(name), repeats) - BED_MS,
            special_watches=watches.PAIR, runs_alone=one.is_shared,
            rank=one.weight + len(SCENARIOS) * (name not in FIRST_LINKS),
        )
        for name in LINKS
        for one in SCENARIOS.values()
    ]  # fmt: skip


def _expected_ms(scenario: Scenario, on: Link, repeats: int) -> float:
    """Returns the time of a bed."""
    if scenario.measures in TIMED:
        each_ms = 1000.0 * (crowd_s(repeats) + PATIENCE_S / 4)
    elif scenario.measures is Measures.OUTAGE:
        each_ms = 1000.0 * (BEFORE_S + scenario.outage_s + AFTER_S)
    else:
        each_ms = SLOW_RATIO * 2 * ideal_ms(PAGE, on) * (1 + bool(scenario.streams))
        each_ms += 1000.0 * HEAD_START_S * bool(scenario.streams)
    ways = len(scenario.ways(on))
    turns = 1 if is_side_by_side(scenario, on) else ways
    return BED_MS * (1 + ways) + len(SCHEMES) * loads(scenario, repeats) * turns * each_ms
