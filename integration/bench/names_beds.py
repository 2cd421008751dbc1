"""Ways to sites for clients of `make bench ONLY=names`: without a box, by an edge that steers names, and by a pair.

Each way has the same emulated link. An edge is at the clients' end of it, and a pair at both ends.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.boxes.bed import Bed
from harness.boxes.pep import PROXY_NAME, gateway_config
from harness.lab.boxes import Boxes, no_box, pair_of_boxes
from harness.net.authority import Authority
from harness.net.namespaces import Namespace
from harness.net.topology import GATEWAY, PROXY, PROXY_RANGE, RESOLVER
from harness.origins.program import Origins, Site
from harness.origins.shared_certificates import SharedPage

LINK = "rural-lte"
"""It has a round trip of 80 ms."""


@dataclass(frozen=True)
class Clients:
    """Where a browser runs, and the authority that it trusts."""

    namespace: Namespace
    authority: Authority


@dataclass(frozen=True)
class Way:
    """One of those that are compared."""

    name: str
    suffix: str
    """Of its figures."""
    started: Callable[[Path, Sequence[SharedPage]], AbstractContextManager[Clients]]
    """A context manager, in which the sites of the pages run."""


@contextmanager
def direct(folder: Path, pages: Sequence[SharedPage]) -> Iterator[Clients]:
    """Routers alone."""
    site = site_of(folder, pages)
    with no_box(folder, addresses(site), profile=LINK) as boxes, served(boxes, folder, site) as clients:
        yield clients


@contextmanager
def pair_listed(folder: Path, pages: Sequence[SharedPage]) -> Iterator[Clients]:
    """A pair whose remote has every name at `dns.domains`, and takes clients' connections to any address."""
    site = site_of(folder, pages)
    names = sorted(site.hosts)
    with (
        pair_of_boxes(folder, addresses(site), names, profile=LINK) as boxes,
        served(boxes, folder, site) as clients,
    ):
        yield clients


@contextmanager
def edge(folder: Path, pages: Sequence[SharedPage]) -> Iterator[Clients]:
    """An edge with one address, to which nothing but its DNS server leads."""
    with edge_at(folder, pages, [PROXY]) as bed:
        yield steered(bed, folder)


@contextmanager
def edge_range(folder: Path, pages: Sequence[SharedPage]) -> Iterator[Clients]:
    """The same edge with addresses of a range."""
    with edge_at(folder, pages, [PROXY, PROXY_RANGE]) as bed:
        yield steered(bed, folder)


@contextmanager
def edge_at(folder: Path, pages: Sequence[SharedPage], own: list[str]) -> Iterator[Bed]:
    """An edge whose addresses for steered names are `own`."""
    authority = Authority(folder)
    site = site_of(folder, pages)
    site.dns, site.ca = [f"{RESOLVER}:53"], authority.files.as_dict()
    listen = gateway_config(folder, None)["listen"] | {"intercept": "none"}
    proxy = {"addresses": own, "secure_names": [PROXY_NAME]}
    bed = Bed(folder, site, sorted(site.hosts), authority, wan_profile=LINK, listen=listen, proxy=proxy)
    with bed, bed.without_longhaul():
        yield bed


def steered(bed: Bed, folder: Path) -> Clients:
    """Clients whose resolver is the edge."""
    clients = copy.copy(bed.topology.clients)
    clients.resolv_conf = folder / "steered-resolv.conf"
    clients.resolv_conf.write_text(f"nameserver {GATEWAY}\n")
    return Clients(clients, bed.authority)


def site_of(folder: Path, pages: Sequence[SharedPage]) -> Site:
    """Returns the hosts of all pages."""
    site = Site(https_port=443)
    for page in pages:
        page.add_to(site, folder)
    return site


def addresses(site: Site) -> dict[str, str]:
    """Returns the address of each host."""
    return {name: host["address"] for name, host in site.hosts.items()}


@contextmanager
def served(boxes: Boxes, folder: Path, site: Site) -> Iterator[Clients]:
    """Serves the hosts of a site, whose names the network resolves already."""
    (home := folder / "servers").mkdir()
    site.ca = boxes.authority.files.as_dict()
    with Origins(site.write(home / "site.json"), home, boxes.internet):
        yield Clients(boxes.clients, boxes.authority)


WAYS = (
    Way("direct", "_direct", direct),
    Way("edge, one address", "", edge),
    Way("edge, a range", "_range", edge_range),
    Way("pair, listed", "_pair", pair_listed),
)
