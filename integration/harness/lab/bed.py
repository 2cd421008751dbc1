"""One bed: the namespaces, the sites of some pages and the contenders' processes. It stands while turns are taken."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.clients.commands import Curl
from harness.net.authority import Authority
from harness.net.topology import RESOLVER, site_addresses
from harness.origins.program import Origins, Site

from .contenders import LinkContender
from .contenders.base import LinkTrack
from .ideal import Weight, weigh
from .line import Line
from .links import Link
from .pages import Page
from .quiet import wait_until_quiet
from .served import ServedPage

CONGESTION_CONTROL = "bbr"
"""Of the origins, on every link. It is the best one for `direct`, so no gain comes from an old TCP of the servers."""

WAKES = 3
WAKE_HOST = "wake.example.org"
"""The server of the small requests. A box that has resolved the name of a page would serve its first visit sooner."""


@dataclass
class LinkBed:
    """The parts that stand, and the weights of the pages."""

    track: LinkTrack
    weights: dict[str, Weight]
    contenders: dict[str, LinkContender]
    absent: dict[str, str]
    """Contenders that cannot take part, and why."""


@contextmanager
def standing(
    folder: Path,
    link: Link,
    pages: Sequence[ServedPage],
    contenders: list[LinkContender],
    *,
    seed: int,
    weighed: bool = True,
    http3: bool = False,
    https: bool = True,
    as_shipped: bool = False,
) -> Iterator[LinkBed]:
    """Sets everything up, and takes it down in any case. `weighed` measures the pages' weights. With `http3` the
    origins speak HTTP/3 and announce it. Without `https` they refuse connections to port 443. `as_shipped` leaves
    https-first and QUIC of browsers on."""
    authority = Authority(folder)
    site = Site(dns=[f"{RESOLVER}:53"], http3_port=443 if http3 else 0, ca=authority.files.as_dict())
    site.https_port = 443 if https else 0
    # Two pages may share addresses, but the hosts of one page may not. Browsers keep sockets by name, and one load
    # never has names of two pages.
    addresses = itertools.cycle(site_addresses())
    for page in pages:
        page.add_to(site, folder, addresses)
    site.hosts[WAKE_HOST] = {"address": next(addresses), "generate": True}
    line = Line(folder, link.name, seed=seed)
    absent = {one.name: reason for one in contenders if (reason := one.missing())}
    present = {one.name: one for one in contenders if one.name not in absent}
    with ExitStack() as stack:
        stack.enter_context(line)
        use_congestion_control(line, CONGESTION_CONTROL)
        stack.enter_context(Origins(site.write(folder / "site.json"), folder, line.internet))
        weights = {
            page.name: weigh(page, site, line.internet, folder) for page in pages if weighed and isinstance(page, Page)
        }
        track = LinkTrack(folder, line, link, authority, sorted(site.hosts), https, as_shipped)
        for one in present.values():
            stack.enter_context(one.started(track))
        assert line.link
        wait_until_quiet(line.link, link.rtt_ms)
        for one in present.values():
            if one.tried:
                _wake(track, one)
        yield LinkBed(track, weights, present, absent)


def use_congestion_control(line: Line, *names: str) -> str:
    """Sets the congestion control of servers and boxes: the first of `names` that the kernel allows. Returns it."""
    allowed = line.internet.run("sysctl", "-n", "net.ipv4.tcp_allowed_congestion_control").stdout.split()
    name = next((name for name in names if name in allowed), allowed[0])
    for namespace in (line.internet, line.gateway, line.near):
        namespace.sysctl("net.ipv4.tcp_congestion_control", name)
    return name


def _wake(track: LinkTrack, one: LinkContender) -> None:
    """Sends one small request through the contender, so that its first connections are open before any load."""
    curl = Curl(track.folder, track.line.clients, "--cacert", str(track.authority.files.cert))
    with one.engaged(track):
        for scheme in (scheme for scheme in one.schemes if track.https or scheme != "https"):
            url = f"{scheme}://{WAKE_HOST}/wake.css"
            # On the slowest links a resolver may time out before the response comes.
            problem = ""
            for _ in range(WAKES):
                answer = curl.get(url, "--range", "0-99", timeout_s=60.0)
                if answer.status in (200, 206):
                    break
                problem = f"{answer.status} {answer.problem}"
            else:
                raise RuntimeError(f"{one.name} does not pass on {scheme}: {problem}")
