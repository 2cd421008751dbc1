"""Every experiment: which pages, links and contenders, and why. One screen a source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .plan import Group

EDGES = ("longhaul-url", "longhaul-dns", "longhaul-edge")
PAIRS = ("longhaul-pair",)
EVERYBODY = (
    "direct", "squid-transparent", "squid-explicit", "split-tcp", "split-tcp-window", "envoy-pair", *EDGES, *PAIRS,
)  # fmt: skip
HTTPS = ("direct", "squid-explicit", "split-tcp", "split-tcp-window", "envoy-pair", "longhaul-edge", *PAIRS)
OURS = ("direct", "longhaul-edge", *PAIRS)


@dataclass(frozen=True)
class Experiment:
    """One experiment; `groups` lists its loads for a number of repeats."""

    name: str
    title: str
    about: str
    groups: Callable[[int], list[Group]]


def _each_page(experiment: str, links: tuple[str, ...], pages: tuple[str, ...], contenders: tuple[str, ...]):
    """A bed for every page and link: on slow links they run side by side."""

    def groups(repeats: int) -> list[Group]:
        return [Group(experiment, link, (page,), ("http",), contenders, repeats) for link in links for page in pages]

    return groups


def _today(repeats: int) -> list[Group]:
    def group(link: str, pages: tuple[str, ...], schemes: tuple[str, ...], *, all_contenders: bool = False) -> Group:
        return Group(
            "today", link, pages, schemes, EVERYBODY if all_contenders else (*OURS, "envoy-pair"), repeats,
            warm=OURS if all_contenders else (), https_contenders=HTTPS if all_contenders else None,
        )  # fmt: skip

    return [
        group("geo", ("cnn", "median-2025"), ("http",), all_contenders=True),
        group("geo", ("cnn", "median-2025"), ("https",), all_contenders=True),
        group("leo", ("cnn", "median-2025"), ("http", "https")),
        group("rural-lte", ("cnn", "median-2025"), ("http", "https")),
        group("cdma-average", ("cnn",), ("http",)),
        group("cdma-average", ("cnn",), ("https",)),
        group("cdma-congested", ("cnn",), ("http",)),
        group("cdma-congested", ("cnn",), ("https",)),
    ]


TEN = tuple(
    f"ten-{name}"
    for name in ["cnn", "bahn", "ebay", "alps", "t-mobile", "lastminute", "starwars", "samsung", "snoopy", "nasa"]
)

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
                       ("direct", "longhaul-paper", *EDGES, *PAIRS)),
        ),
        Experiment(
            "ten-pages", "Ten pages against the ideal download protocol",
            "Gomez et al., figures 8 to 10: one box and two against the ideal, on UMTS.",
            _each_page("ten-pages", ("umts",), TEN, ("direct", "longhaul-edge", "envoy-pair", *PAIRS)),
        ),
        Experiment(
            "images", "One to thirty images through a split pair",
            "Davern et al., figures 3 to 5: pages of 1 to 30 JPEGs on three satellite links.",
            _each_page("images", ("satellite-256k", "satellite-500k", "satellite-2m"),
                       ("images-1", "images-10", "images-20", "images-30"),
                       ("direct", "longhaul-edge", "envoy-pair", *PAIRS)),
        ),
    )
}  # fmt: skip

QUICK_GROUPS = [
    Group("quick", "geo", ("images-10",), ("http", "https"), ("direct", "longhaul-edge"), 1),
    Group("quick", "rural-lte", ("cnn",), ("http",), ("direct", "longhaul-edge", "envoy-pair"), 1),
]
"""What CI runs: every part of the instrument, a few loads."""
