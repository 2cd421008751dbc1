"""Pairs with the files of `longhaul pair init` and the settings of `longhaul host`, beside networks without boxes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.boxes.pair import Pair
from harness.lab.bed import CONGESTION_CONTROL, use_congestion_control
from harness.lab.init_pair import pair_of_init
from harness.lab.line import Line
from harness.lab.links import link
from harness.net.link import Link as Wire
from harness.net.topology import RESOLVER
from harness.origins.program import Origins, Site


@dataclass
class Way:
    """A network between clients and servers, with a pair or without boxes."""

    name: str
    """pair or direct."""
    folder: Path
    line: Line
    pair: Pair | None = None

    @property
    def wire(self) -> Wire:
        """Its emulated link."""
        assert self.line.link
        return self.line.link


@contextmanager
def by_pair(folder: Path, site: Site, profile: str) -> Iterator[Way]:
    """A pair without a list, whose boxes have never seen a name."""
    with direct(folder, site, profile) as way, pair_of_init(folder, way.line, link(profile).setting) as both:
        yield Way("pair", folder, way.line, both)


@contextmanager
def direct(folder: Path, site: Site, profile: str) -> Iterator[Way]:
    """The same network, whose boxes only route."""
    folder.mkdir()
    with Line(folder, profile, seed=1) as line, Origins(site.write(folder / "site.json"), folder, line.internet):
        use_congestion_control(line, CONGESTION_CONTROL)
        yield Way("direct", folder, line)


@contextmanager
def side_by_side(folder: Path, site: Site, profile: str) -> Iterator[tuple[Way, Way]]:
    """Both ways, each with a link and servers of its own."""
    with by_pair(folder / "pair", site, profile) as ours, direct(folder / "direct", site, profile) as theirs:
        yield ours, theirs


def site_of(names: dict[str, str]) -> Site:
    """Returns a site that resolves each name to an address."""
    return Site(dns=[f"{RESOLVER}:53"], records={name: [address] for name, address in names.items()})
