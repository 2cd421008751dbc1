"""An edge, a pair or no box at all between the same clients and the same origins, on any link of the lab.

Servers run in the namespace `internet`. A program that is started there reaches them without Longhaul, by the same
names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.boxes.bed import PROXY_NAME, Bed
from harness.boxes.pair import FAIR, GROUND_NAME, REDIRECTS, REMOTE_NAME, Ends, pair
from harness.boxes.pep import Pep
from harness.host.artifacts import built, need_commands, need_root
from harness.net.authority import Authority
from harness.net.link import Link
from harness.net.namespaces import Namespace
from harness.net.sockets import connected
from harness.net.topology import CLIENT_DEVICE, PROXY, RESOLVER
from harness.origins.program import Origins, Site

from . import links
from .bed import use_congestion_control
from .contenders.base import intercept, rules
from .line import FAR, NEAR, NEAR_DEVICE, NEAR_HOME, Line

OTHER_CLIENT = "192.0.2.3"
"""A second client, beside the one of the topology."""
PROFILE = "leo"
"""The link of a pair unless a test names one. It is the fastest."""


@dataclass
class Boxes:
    """A network with clients, and what stands between them and the origins."""

    name: str
    """edge, pair or direct."""
    folder: Path
    authority: Authority
    clients: Namespace
    internet: Namespace
    host: Namespace
    """The first box that clients meet, or the router in its place."""
    front: str
    """The address that a steered name has."""
    peps: list[Pep] = field(default_factory=list)
    """Each Longhaul. The last one sends requests to origins."""
    link: Link | None = None

    def open(self, address: str, port: int, **options: Any):
        """Opens a client's connection, as `connected` does."""
        return connected(self.clients, address, port, **options)


def site_of(authority: Authority, names: dict[str, str]) -> Site:
    """Returns a site that resolves names, each to its address. Other programs serve them."""
    site = Site(dns=[f"{RESOLVER}:53"], https_port=443, ca=authority.files.as_dict())
    site.records = {name: [address] for name, address in names.items()}
    site.records |= {GROUND_NAME: [FAR], REMOTE_NAME: [NEAR], PROXY_NAME: [PROXY]}
    return site


@contextmanager
def edge(
    folder: Path,
    names: dict[str, str],
    steered: Sequence[str],
    *,
    profile: str | None = None,
    authority: Authority | None = None,
    **config: Any,
) -> Iterator[Boxes]:
    """An edge with its defaults. `config` replaces sections of its file."""
    signer = authority or Authority(folder)
    bed = Bed(folder, site_of(signer, names), steered, signer, link_profile=profile, **config)
    with bed:
        net = bed.topology
        _add_client(net.clients)
        _resolves(net.internet, net.clients)
        yield Boxes("edge", folder, signer, net.clients, net.internet, net.gateway, PROXY, [bed.pep], net.link)


@contextmanager
def pair_of_boxes(
    folder: Path,
    names: dict[str, str],
    steered: Sequence[str],
    *,
    profile: str | None = None,
    authority: Authority | None = None,
    front: str = NEAR_HOME,
    **changes: Any,
) -> Iterator[Boxes]:
    """A pair with its defaults. `front` is the address of the remote for clients. `changes` are those of
    `write_pair`."""
    profile = profile or PROFILE
    signer = authority or Authority(folder)
    with _line(folder, names, profile, signer) as line, ExitStack() as stack:
        ends = Ends(line.near, front, line.gateway, FAR)
        if front != NEAR_HOME:
            line.near.ip("address", "add", f"{front}/32", "dev", "lo")
        setting = FAIR | links.link(profile).setting
        both = stack.enter_context(pair(folder, ends, setting, trusted=signer.files.cert, steered=steered, **changes))
        stack.enter_context(rules(line.near, intercept(NEAR_DEVICE, *REDIRECTS)))
        both.until_piped()
        peps = [both.remote, both.ground]
        yield Boxes("pair", folder, signer, line.clients, line.internet, line.near, front, peps, line.link)


@contextmanager
def no_box(
    folder: Path,
    names: dict[str, str],
    steered: Sequence[str] = (),  # noqa: ARG001 - every kind takes the same
    *,
    profile: str | None = None,
    authority: Authority | None = None,
) -> Iterator[Boxes]:
    """The network of a pair, whose boxes only route."""
    signer = authority or Authority(folder)
    with _line(folder, names, profile or PROFILE, signer) as line:
        yield Boxes("direct", folder, signer, line.clients, line.internet, line.near, NEAR_HOME, link=line.link)


@contextmanager
def _line(folder: Path, names: dict[str, str], profile: str, signer: Authority) -> Iterator[Line]:
    site = site_of(signer, names)
    with Line(folder, profile, seed=1) as line, Origins(site.write(folder / "site.json"), folder, line.internet):
        use_congestion_control(line, "bbr")
        _add_client(line.clients)
        _resolves(line.internet, line.clients)
        yield line


def _add_client(clients: Namespace) -> None:
    clients.ip("address", "add", f"{OTHER_CLIENT}/32", "dev", CLIENT_DEVICE)


def _resolves(internet: Namespace, like: Namespace) -> None:
    """Lets programs beside the origins resolve names as clients do."""
    internet.resolv_conf = like.resolv_conf


KINDS: dict[str, Callable[..., AbstractContextManager[Boxes]]] = {
    "edge": edge, "pair": pair_of_boxes, "direct": no_box,
}  # fmt: skip
"""Each kind by its name."""


def need_all() -> None:
    """Raises `Missing` where the machine lacks something that every kind needs."""
    need_root()
    need_commands("ip", "nft", "nsenter", "unshare", "sysctl")
    for name in ("longhaul", "longhaul-link", "coredns", "url_rewrite.wasm", "envoy", "origins"):
        built(name)
