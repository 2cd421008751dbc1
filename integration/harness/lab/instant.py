"""A pair with `dns.instant: on` at its remote, and with the rules of `longhaul host`.

Lookups are sent as a browser sends them, an A query beside an HTTPS query, and as programs do.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dnslib import QTYPE, RCODE, DNSRecord

from harness.boxes.pair import Pair
from harness.boxes.pep import parse_metrics
from harness.clients.commands import Curl
from harness.host.artifacts import built
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.lab.init_pair import pair_of_init
from harness.lab.line import NEAR_DEVICE, Line, is_instant
from harness.lab.links import link
from harness.net.authority import Authority
from harness.net.sockets import socket_in
from harness.net.topology import RESOLVER, SITES
from harness.origins.program import Origins, Site

ON = "dns: { instant: on }\n"
"""The addition to the file of a remote."""
COREDNS = "http://127.0.0.1:9153/metrics"
KEPT = ("inet", "longhaul", "instant_kept")
"""The set of the packet rules that has an element while somebody keeps the map."""
GUARD = "leak"
"""The table that counts packets to the range on the link's devices."""


@dataclass(frozen=True)
class Reply:
    """The response to one query."""

    code: str
    addresses: tuple[str, ...]
    seconds: float

    @property
    def instant(self) -> bool:
        """True if it has an address that the remote made up."""
        return any(is_instant(one) for one in self.addresses)


def look_up(
    line: Line, name: str, *kinds: str, timeout_s: float = 8.0, server: tuple[str, int] = (RESOLVER, 53)
) -> dict[str, Reply]:
    """Sends the queries of one lookup from one socket, all at once. Returns the responses that came in time."""
    found: dict[str, Reply] = {}
    with socket_in(line.clients, socket.SOCK_DGRAM) as sock:
        sock.settimeout(timeout_s)
        began = time.monotonic()
        for number, kind in enumerate(kinds):
            query = DNSRecord.question(name, kind)
            query.header.id = number + 1
            sock.sendto(query.pack(), server)
        while len(found) < len(kinds):
            try:
                reply = DNSRecord.parse(sock.recv(65535))
            except TimeoutError:
                break
            addresses = tuple(str(one.rdata) for one in reply.rr if one.rtype in (QTYPE.A, QTYPE.AAAA))
            seconds = time.monotonic() - began
            found[kinds[reply.header.id - 1]] = Reply(RCODE.get(reply.header.rcode), addresses, seconds)
    return found


@dataclass
class InstantBed:
    """The pair, the link and the origins, all of them running."""

    folder: Path
    line: Line
    site: Site
    authority: Authority
    pair: Pair

    @property
    def curl(self) -> Curl:
        """A client of the remote."""
        return Curl(self.folder, self.line.clients, "--cacert", str(self.authority.files.cert))

    def visit(self, name: str, *more: str) -> Reply:
        """Looks a name up as a browser does. Returns the response to the A query."""
        return look_up(self.line, name, "A", "HTTPS", *more)["A"]

    def program(self, name: str) -> Reply:
        """Looks a name up as other programs do."""
        return look_up(self.line, name, "A", "AAAA")["A"]

    def outcomes(self) -> dict[str, float]:
        """Returns the counts of first lookups at the remote, by outcome."""
        page = parse_metrics(self.pair.remote.page(COREDNS))
        start = "coredns_longhaul_browser_lookups_total{"
        found: dict[str, float] = {}
        for name, value in page.items():
            if name.startswith(start):
                outcome = name.split('outcome="')[1].split('"')[0]
                found[outcome] = found.get(outcome, 0) + value
        return found

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Runs `longhaul host --watch`, which keeps the map to the true addresses."""
        near, remote = self.line.near, self.pair.remote
        watch = [
            built("longhaul"), "host", remote.config, "--clients", NEAR_DEVICE, "--watch",
            "--report", self.folder / "report.json", "--true-addresses", remote.state / "true-addresses.sock",
        ]  # fmt: skip
        with Child(near.inside(watch), self.folder / "watch.log"):
            wait_for("the keeper of the map", lambda: "expires" in near.run("nft", "list", "set", *KEPT).stdout)
            yield

    def leaked(self) -> int:
        """Returns the packets to the range that left towards the link so far."""
        done = self.line.near.run("nft", "list", "table", "ip", GUARD).stdout
        return int(done.split("packets ")[1].split()[0])


@contextmanager
def instant_bed(
    folder: Path,
    profile: str = "geo",
    *,
    names: Sequence[str] = (),
    records: dict[str, list[str]] | None = None,
    site: Site | None = None,
    authority: Authority | None = None,
    remote_more: str = ON,
) -> Iterator[InstantBed]:
    """Sets the bed up. `names` are hosts with an origin, `records` names with addresses alone, and `site` has further
    hosts."""
    authority = authority or Authority(folder)
    site = site or Site(https_port=443)
    site.dns, site.ca = [f"{RESOLVER}:53"], authority.files.as_dict()
    addresses = (str(one) for one in SITES.hosts() if str(one) != RESOLVER)
    for name in names:
        site.hosts[name] = {"address": next(addresses), "special": True, "generate": True}
    site.records |= records or {}
    with (
        Line(folder, profile, seed=1) as line,
        Origins(site.write(folder / "site.json"), folder, line.internet),
        pair_of_init(
            folder, line, link(profile).setting, trusted=authority.files.cert, remote_more=remote_more
        ) as both,
    ):
        line.near.run("nft", "-f", write_guard(folder))
        yield InstantBed(folder, line, site, authority, both)


def write_guard(folder: Path) -> Path:
    """Writes the rules that count what leaves for the range behind every other rule."""
    path = folder / "leak.nft"
    path.write_text(
        f"table ip {GUARD} {{\n\tchain out {{\n\t\ttype filter hook postrouting priority 900; policy accept;\n"
        '\t\toifname "sky0" ip daddr 198.18.0.0/15 counter\n\t}\n}\n'
    )
    return path
