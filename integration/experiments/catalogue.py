"""Every experiment: its pages, links and contenders, and the reason for them. Each source takes one screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from harness.lab import watches

from .field.scenarios import groups as field_groups
from .field.summary import summed as field_summed
from .plan import Group

EDGES = ("longhaul-url", "longhaul-dns", "longhaul-edge")
PAIRS = ("longhaul-pair",)
EVERYBODY = (
    "direct", "squid-transparent", "squid-explicit", "ziproxy-squid", "split-tcp", "split-tcp-window", "haproxy",
    "nginx", "envoy-pair", *EDGES, *PAIRS,
)  # fmt: skip
HTTPS = (
    "direct", "squid-explicit", "split-tcp-window", "haproxy", "nginx", "envoy-pair", "longhaul-edge", *PAIRS,
)  # fmt: skip
OURS = ("direct", "longhaul-edge", *PAIRS)

MORE_LOADS = 7
"""The loads of a whole run where ratios lie near 1 and loads differ by chance."""


@dataclass(frozen=True)
class Experiment:
    """One experiment; `groups` lists its loads for a number of repeats."""

    name: str
    title: str
    about: str
    groups: Callable[[int], list[Group]]
    summed: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """For an experiment each of whose beds stands alone: it returns the details with the cells, figures and goals of
    the loads that were made so far. So its results count before all beds have run."""


def _each_page(experiment: str, links: tuple[str, ...], pages: tuple[str, ...], contenders: tuple[str, ...]):
    """Uses a bed for every page and link. On slow links they run side by side."""

    def groups(repeats: int) -> list[Group]:
        return [Group(experiment, link, (page,), ("http",), contenders, repeats) for link in links for page in pages]

    return groups


def _today(repeats: int) -> list[Group]:
    """Browsers have https-first and QUIC on. So http pages have beds of their own, whose servers refuse https."""
    cnn, both = ("cnn",), ("cnn", "median-2025")

    def group(link: str, pages: tuple[str, ...], scheme: str, contenders: tuple[str, ...] = OURS) -> Group:
        return Group("today", link, pages, (scheme,), contenders, repeats, as_shipped=True)

    def more(usual: Group) -> list[Group]:
        """Up to `MORE_LOADS` in all."""
        if not 1 < repeats < MORE_LOADS:
            return []
        return [replace(usual, first_repeat=repeats + 1, repeats=MORE_LOADS - repeats)]

    def fast(link: str, scheme: str) -> list[Group]:
        usual = group(link, both, scheme)
        return [usual, *more(usual)]

    def cell(link: str) -> list[Group]:
        """Over http, cells are part of the experiment `cells`. Over https, one box can gain least there."""
        one_box = group(link, cnn, "https", ("direct", "longhaul-edge", "longhaul-replace"))
        return [replace(one_box, contenders=(*one_box.contenders, *PAIRS)), *more(one_box)]

    def first_visits(link: str, pages: tuple[str, ...]) -> list[Group]:
        """The pair of `pair init` has beds of its own, because two pairs would listen on the same ports."""
        return [group(link, pages, scheme, ("longhaul-pair-first-visit",)) for scheme in ("http", "https")]

    return [
        replace(group("geo", both, "http", EVERYBODY), warm=OURS),
        replace(group("geo", both, "https", HTTPS), warm=OURS),
        *(one for link in ("leo", "rural-lte") for scheme in ("http", "https") for one in fast(link, scheme)),
        # Browsers open each connection twice where a round trip is long and a second address is in the DNS response.
        group("geo", cnn, "https", ("longhaul-replace",)),
        *cell("cdma-average"),
        *cell("cdma-congested"),
        *(group("maritime", cnn, scheme) for scheme in ("http", "https")),
        *first_visits("geo", both),
        *first_visits("maritime", cnn),
    ]


def _saved(repeats: int) -> list[Group]:
    def group(pages: tuple[str, ...], scheme: str) -> Group:
        return Group("saved", "geo", pages, (scheme,), OURS, repeats)

    return [
        group(("saved-cbslocal", "saved-foxnews", "saved-time"), "http"),
        group(("saved-engadget", "saved-businessweek"), "http"),
        group(("saved-boingboing", "saved-creativecommons"), "https"),
    ]


TEN = (
    "ten-cnn", "ten-bahn", "ten-ebay", "ten-alps", "ten-t-mobile", "ten-lastminute", "ten-starwars", "ten-samsung",
    "ten-snoopy", "ten-nasa",
)  # fmt: skip


def _connections(repeats: int) -> list[Group]:  # noqa: ARG001 - counts do not vary
    pages = tuple(f"hundred-{number:02d}" for number in range(100))
    # Two beds side by side. The counts do not depend on the link.
    return [
        Group("connections", "rural-lte", pages, (), contenders, 1, special="connections", special_ms=280_000)
        for contenders in (("direct", "longhaul-dns"), ("longhaul-paper", "longhaul-url"))
    ]


def _gprs(repeats: int) -> list[Group]:
    site = ("gprs-test-site",)
    return [
        Group("gprs", "gprs", site, (), (), 1, special="fairness", special_ms=3 * 45_000),
        # A load takes most of a minute, so every repeat has its own bed, side by side.
        *(
            Group(
                "gprs",
                "gprs",
                site,
                ("http",),
                ("direct", "split-tcp", "longhaul-edge"),
                1,
                first_repeat=repeat,
            )
            for repeat in range(1, repeats + 1)
        ),
    ]


def _mobility(repeats: int) -> list[Group]:
    return [
        Group(
            "mobility",
            "rural-lte",
            (),
            (),
            (),
            repeats,
            special="mobility",
            special_ms=6 * (9_000 + 4_000 * repeats),
            special_watches=2 * watches.EDGE,
        )
    ]


def _one_flight(repeats: int) -> list[Group]:
    pages = ("cnn", "lab-modern")
    pairs = ("envoy-pair", "longhaul-pair", "longhaul-pair-bundling")
    paper = ("images-1", "images-10", "images-30")
    # The beds run one after the other, because two pairs would need the same sockets.
    return [
        Group(
            "one-flight",
            "geo",
            pages,
            (),
            ("direct", "longhaul-edge-full", *pairs),
            repeats,
            special="one-flight",
            special_ms=100_000 + repeats * 140_000,
        ),
        # The fastest of the paper's links, where it gained most without recompressing anything. Each page has one load,
        # because the comparison uses the mean over the pages.
        Group("one-flight", "satellite-2m", paper, (), ("direct", *pairs), 1, special="one-flight", special_ms=95_000),
    ]


def _quic(repeats: int) -> list[Group]:
    # Each load has two visits. Between them pass up to 30 s, until the first one's QUIC connections are closed.
    contenders = ("direct", "longhaul-pair-unlisted")
    return [Group("quic", "geo", ("cnn",), (), contenders, repeats, special="quic", special_ms=repeats * 90_000)]


def _bytes(repeats: int) -> list[Group]:
    """Uses a bed for every repeat, because a pair caches the objects of http pages, and one for each pair, because two
    would need the same addresses."""
    everybody = ("direct", "ziproxy-squid", "longhaul-edge", "longhaul-pair-default")
    levers = ("longhaul-pair-br", "longhaul-pair-deltas", "longhaul-pair-images")
    heavy = ("cnn", "yahoo", "britannica", "median-2025")
    pages = {"cdma-congested": heavy[:3], "cdma-average": heavy[:3], "umts": heavy, "maritime": heavy}

    def group(link: str, pages: tuple[str, ...], contenders: tuple[str, ...], repeat: int) -> Group:
        return Group(
            "bytes", link, pages, ("http",), contenders, 1, first_repeat=repeat,
            seconds=("cnn",), pictures=link == "cdma-average" and repeat == 1,
        )  # fmt: skip

    return [
        one
        for repeat in range(1, repeats + 1)
        for one in (
            *(group(link, own, everybody, repeat) for link, own in pages.items()),
            group("cdma-congested", ("cnn",), ("longhaul-pair-gzip",), repeat),
            group("cdma-average", heavy[:3], ("longhaul-pair-gzip",), repeat),
            # Each lever alone, where bytes bound pages most clearly.
            *(group("cdma-average", ("cnn",), (lever,), repeat) for lever in levers),
        )
    ]


def _just_started(repeats: int) -> list[Group]:
    ways = ("direct", "longhaul-pair-started")
    return [
        Group("just-started", link, ("cnn", "median-2025"), ("http", "https"), ways, repeats)
        for link in ("leo", "rural-lte")
    ]


def _simulation(name: str, link: str) -> Callable[[int], list[Group]]:
    """Needs no bed and no repeats. The link gives its rate and round trip."""
    return lambda _: [Group(name, link, (), (), (), 1, special=name, special_ms=10_000)]


EXPERIMENTS: dict[str, Experiment] = {
    one.name: one
    for one in (
        Experiment(
            "today", "Pages and links of today",
            "The median home page of 2025 and the CNN page of 2003, over http and https, on today's links.",
            _today,
        ),
        Experiment(
            "cells", "Response time and throughput in two cells",
            "Rodriguez et al., WWW 2004, figures 6 and 7: three pages on an average and on a congested CDMA2000 cell.",
            _each_page("cells", ("cdma-average", "cdma-congested"), ("cnn", "yahoo", "britannica"),
                       ("direct", "longhaul-paper", "longhaul-dns", "longhaul-edge", *PAIRS)),
        ),
        Experiment(
            "ten-pages", "Ten pages against the ideal download protocol",
            "Gomez et al., figures 8 to 10: one box and two against the ideal, on UMTS.",
            _each_page("ten-pages", ("umts",), TEN, OURS),
        ),
        Experiment(
            "images", "One to thirty images through a split pair",
            "Davern et al., figures 3 to 5: pages of 1 to 30 JPEGs on three satellite links.",
            _each_page("images", ("satellite-256k", "satellite-500k", "satellite-2m"),
                       ("images-1", "images-10", "images-30"), (*OURS, "ziproxy-squid")),
        ),
        Experiment(
            "connections", "Connections and name lookups for a hundred pages",
            "Rodriguez et al., WWW 2004, figure 5: a hundred pages, one after the other in one browser.",
            _connections,
        ),
        Experiment(
            "gprs", "A full queue, fairness, a clamped window",
            "Chakravorty and Pratt, MWCN 2002: two transfers and a test page over GPRS.",
            _gprs,
        ),
        Experiment(
            "shards", "The number of proxy addresses",
            "Gomez et al., section 4.2.1, and Chakravorty et al., MobiCom 2004: addresses act as connections do.",
            _each_page("shards", ("geo",), ("cnn", "median-2025"),
                       ("direct", *(f"longhaul-http-{count}" for count in (1, 2, 4, 6)),
                        *(f"longhaul-https-{count}" for count in (2, 4)), "longhaul-edge")),
        ),
        Experiment(
            "saved", "Saved pages of the web",
            "Real markup over a satellite, five pages over http and two over https.",
            _saved,
        ),
        Experiment(
            "one-flight", "A page in one flight",
            "Davern et al.: objects are sent to the near box before they are asked for; first and later visits.",
            _one_flight,
        ),
        Experiment(
            "quic", "HTTP/3 of origins: past the pair, or refused",
            "The CNN page from origins that speak HTTP/3, for a browser that knows they do: `split.udp443`, both ways.",
            _quic,
        ),
        Experiment(
            "mobility", "A client that moves in the middle of a page",
            "Rodriguez et al., WWW 2004, section 5: cases A, B and C.",
            _mobility,
        ),
        Experiment(
            "bytes", "Smaller bodies where bytes bound pages",
            "Pages on slow links: ziproxy, one box, a pair, and pairs with one or none of br, differences and images.",
            _bytes,
        ),
        Experiment(
            "just-started", "The first page of a pair",
            "A page requested in the first second of a pair, while its connections are being opened.",
            _just_started,
        ),
        Experiment(
            "fec", "Forward error correction, simulated",
            "Chakravorty et al., MobiCom 2004: the parity that downloads a page soonest on two channels.",
            _simulation("fec", "gprs"),
        ),
        Experiment(
            "next-page", "Prefetching of linked pages, simulated",
            "Gomez et al., section 4.3.4: what learned links save a page, and the bytes that nobody requests.",
            _simulation("next-page", "geo"),
        ),
    )
}  # fmt: skip

FIELD = Experiment(
    "field",
    "Links as they are",
    "Beside downloads and uploads, with loss and outages, 5 and 15 users, a wrong `link:`; direct and a pair.",
    field_groups,
    field_summed,
)
APART = {FIELD.name: FIELD}
"""Experiments that run only where they are named, because they take longer than all others together."""

QUICK_GROUPS = [
    Group("quick", "geo", ("images-10",), ("http", "https"), ("direct", "longhaul-edge"), 1),
    Group("quick", "rural-lte", ("cnn",), ("http",), ("direct", "longhaul-edge", "envoy-pair"), 1),
]
"""The subset for CI: a few loads with every part of the instrument."""
