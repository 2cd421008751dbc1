"""A remote with two emulated links to its ground, and the watch of `longhaul host` that keeps it on those that work.

clients ── cable ── near ══ quick link ══ gateway ── cable ── internet
                        ══ wide link  ══
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.boxes.pair import REDIRECTS, Ends, Pair, running, write_pair
from harness.clients.commands import Curl
from harness.host.artifacts import built
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.net.link import Link
from harness.net.namespaces import Namespace
from harness.net.topology import GATEWAY, RESOLVER, SITES, Topology
from harness.origins.program import Origins, Site

from . import links
from .contenders.base import intercept, rules
from .line import HOME, NEAR_DEVICE, NEAR_HOME, join_home

GROUND = "198.51.100.40"
"""The address of the ground, which both links lead to."""
GROUND_IPV6 = "2001:db8:40::1"
"""The same in a bed with IPv6, where the remote knows no other."""
ORIGIN, OTHER = "lab.example.org", "today.example.org"
assert GATEWAY == NEAR_HOME, "the clients' default route is the topology's"


@dataclass(frozen=True)
class OneLink:
    """A link of the remote: its name, the emulator's profile, and what the operator says of it."""

    name: str
    profile: str
    price: str = "free"
    use: str = "auto"
    fill: str = "off"
    mtu: int | None = None

    @property
    def device(self) -> str:
        """The interface of the remote."""
        return f"{self.name}0"

    @property
    def setting(self) -> dict[str, str | int]:
        """The item of `links`."""
        values = links.link(self.profile).setting
        wishes = {"price": self.price, "fill": self.fill, "use": self.use, "mtu": self.mtu or "auto"}
        return {"name": self.name, "device": self.device, **values, **wishes}


LTE = OneLink("lte", "rural-lte")
GEO = OneLink("geo", "geo", use="backup")
LEO = OneLink("leo", "leo")


class TwoLinks(Topology):
    """The namespaces, with one emulator for each link."""

    def __init__(
        self,
        folder: Path,
        lines: tuple[OneLink, ...],
        *,
        multipath: tuple[bool, bool] = (True, True),
        links_ipv6: bool = False,
    ) -> None:
        """`multipath`: the kernels of the remote and of the ground have Multipath TCP."""
        super().__init__(folder)
        self._lines = lines
        self._multipath = multipath
        self._links_ipv6 = links_ipv6
        self.near = Namespace("near")
        self.emulated: dict[str, Link] = {}

    def _join_clients(self, stack: ExitStack) -> None:
        stack.enter_context(self.near)
        join_home(self.clients, self.near)
        for namespace, has_it in zip((self.near, self.gateway), self._multipath, strict=True):
            namespace.sysctl("net.mptcp.enabled", int(has_it))
            # `longhaul host` makes this setting at both ends.
            namespace.sysctl("net.ipv4.tcp_slow_start_after_idle", 0)
        self.gateway.ip("address", "add", f"{GROUND}/32", "dev", "lo")
        for number, line in enumerate(self._lines):
            folder = self._folder / f"link-{line.name}"
            folder.mkdir()
            near, far = (f"192.0.2.{129 + 4 * number + end}/30" for end in (0, 1))
            ends = (self.near, line.device, near), (self.gateway, line.device, far)
            self.emulated[line.name] = stack.enter_context(Link(folder, line.profile, *ends, seed=number + 1))
            # The operator's own routes: the first link is the default.
            self.near.ip("route", "add", "default", "dev", line.device, "metric", str(10 * (number + 1)))
            if self._links_ipv6:
                self._add_ipv6_to(line.device, number)
        self.gateway.ip("route", "add", HOME, "dev", self._lines[0].device)
        if self._links_ipv6:
            self.gateway.sysctl("net.ipv6.conf.lo.disable_ipv6", 0)
            self.gateway.ip("address", "add", f"{GROUND_IPV6}/128", "dev", "lo")

    def _add_ipv6_to(self, device: str, number: int) -> None:
        """Gives a link addresses of IPv6. The other end is the gateway of this one."""
        ends = (self.near, f"2001:db8:{0x41 + number:x}::2"), (self.gateway, f"2001:db8:{0x41 + number:x}::1")
        for namespace, address in ends:
            namespace.sysctl(f"net.ipv6.conf.{device}.disable_ipv6", 0)
            namespace.ip("address", "add", f"{address}/64", "dev", device)
        route = ["default", "via", ends[1][1], "dev", device, "metric", str(10 * (number + 1))]
        self.near.ip("-6", "route", "add", *route)


@dataclass
class TwoLinksBed:
    """A pair over the links, and the watch at its remote."""

    folder: Path
    line: TwoLinks
    site: Site
    pair: Pair
    watch: Child | None
    authority: Authority

    @property
    def curl(self) -> Curl:
        """A client of the remote."""
        return Curl(self.folder, self.line.clients, "--cacert", str(self.authority.files.cert))

    def states(self) -> dict[str, dict[str, Any]]:
        """Returns what the watch says of each link, by its name."""
        report = reports(self.folder) / "report.json"
        return {one["name"]: one for one in json.loads(report.read_text()).get("links", [])} if report.exists() else {}

    def sent_down(self) -> int:
        """Returns the bytes a second that the ground sends at most. It has shares by native filters."""
        rendered = self.pair.ground.state / "rendered" / "ecds" / "link-share.yaml"
        return int(re.findall(r'bytes_per_second\\":(\d+)', rendered.read_text())[0])

    def until(self, name: str, *, alive: bool, timeout_s: float = 20.0) -> None:
        """Waits until the kernel uses the link, or does not."""
        wait_for(
            f"the link {name} to be {'used' if alive else 'left alone'}",
            lambda: (f"dev {name}0" in self.endpoints()) == alive,
            timeout_s=timeout_s,
            interval_s=0.1,
        )

    def endpoints(self) -> str:
        """Returns the endpoints of Multipath TCP at the remote, as `ip` shows them."""
        return self.line.near.ip("mptcp", "endpoint", "show")

    def sockets(self) -> str:
        """Returns the sockets of Multipath TCP at the remote, as `ss` shows them."""
        return self.line.near.run("ss", "-MnH", "state", "established").stdout

    def original(self, size: int) -> bytes:
        """Returns the body of a download as the origin sends it."""
        address = self.site.hosts[ORIGIN]["address"]
        curl = Curl(self.folder, self.line.internet)
        return curl.get(download(size), "--resolve", f"{ORIGIN}:80:{address}", timeout_s=60).body


def download(size: int, host: str = ORIGIN, scheme: str = "http") -> str:
    """The URL of a response of this size."""
    return f"{scheme}://{host}/_/answer?size={size}"


def resolved(bed: TwoLinksBed, host: str, port: int) -> tuple[str, str]:
    """The option of curl with which a client needs no lookup."""
    return "--resolve", f"{host}:{port}:{bed.site.hosts[host]['address']}"


def crossed(bed: TwoLinksBed, name: str) -> int:
    """The bytes that have come to the remote over a link."""
    return bed.line.emulated[name].statistics()["down"]["delivered"]["bytes"]


def load_page(bed: TwoLinksBed, scheme: str, name: str) -> float:
    """Loads a page and twelve objects of three hosts, six at a time. Returns the seconds."""
    hosts = [f"h{number}.example.org" for number in range(3)]
    objects = [f"{scheme}://{hosts[number % 3]}/{name}-{number}.png?size=8000" for number in range(12)]
    began_s = now_s()
    page = bed.curl.get(f"{scheme}://{hosts[0]}/{name}.html", timeout_s=60)
    assert page.status == 200, page
    outputs = [word for url in objects for word in ("--output", "/dev/null", url)]
    done = bed.line.clients.run(
        "curl", "--silent", "--show-error", "--fail", "--parallel", "--parallel-max", "6", "--max-time", "60",
        "--cacert", bed.authority.files.cert, *outputs, timeout_s=90,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return round(now_s() - began_s, 3)


@contextmanager
def two_links(
    folder: Path,
    lines: tuple[OneLink, ...] = (LTE, GEO),
    *,
    multipath: tuple[bool, bool] = (True, True),
    watched: bool = True,
    far_multipath: str = "on",
    ipv6: bool = False,
) -> Iterator[TwoLinksBed]:
    """Sets up the bed. With one link, the remote has `link`. `far_multipath` is `split.multipath` of the ground. With
    `ipv6`, the remote reaches the ground by IPv6."""
    authority = Authority(folder)
    site = Site(dns=[f"{RESOLVER}:53"], https_port=443, ca=authority.files.as_dict())
    addresses = (str(one) for one in SITES.hosts() if str(one) != RESOLVER)
    site.hosts[ORIGIN] = {"address": next(addresses), "special": True, "generate": True}
    site.hosts[OTHER] = {"address": next(addresses), "special": True, "generate": True}
    for number in range(6):
        site.hosts[f"h{number}.example.org"] = {"address": next(addresses), "generate": True}
    with ExitStack() as stack:
        line = stack.enter_context(TwoLinks(folder, lines, multipath=multipath, links_ipv6=ipv6))
        stack.enter_context(Origins(site.write(folder / "site.json"), folder, line.internet))
        ends = Ends(line.near, NEAR_HOME, line.gateway, f"[{GROUND_IPV6}]" if ipv6 else GROUND)
        first = links.link(lines[0].profile).setting
        of_remote = {"link": None, "links": [one.setting for one in lines]} if len(lines) > 1 else {}
        if lines[0].fill != "off":
            first["fill"] = lines[0].fill
        files = write_pair(folder, ends, first, near=of_remote)
        _set(files.ground, "split", "multipath", far_multipath)
        both = stack.enter_context(running(files, ends, trusted=authority.files.cert))
        stack.enter_context(rules(line.near, intercept(NEAR_DEVICE, *REDIRECTS)))
        stack.callback(shutil.rmtree, reports(folder), ignore_errors=True)
        watch = stack.enter_context(watch_links(folder, line, both)) if watched else None
        bed = TwoLinksBed(folder, line, site, both, watch, authority)
        if watched and len(lines) > 1 and multipath[0]:
            for one in lines:
                bed.until(one.name, alive=True)
        both.until_piped()
        yield bed


def _set(file: Path, section: str, key: str, value: str) -> None:
    """Sets a key of a file with one section a line."""
    lines = dict(line.split(": ", 1) for line in file.read_text().splitlines())
    lines[section] = json.dumps({**json.loads(lines[section]), key: value})
    file.write_text("".join(f"{name}: {text}\n" for name, text in lines.items()))


def watch_links(folder: Path, line: TwoLinks, both: Pair) -> Child:
    """The service `longhaul-host-watch@`. The bed makes the settings of `longhaul-host@` in /proc/sys by hand."""
    for name, value in (("blackhole_timeout", 0), ("close_timeout", 20)):
        if (Path("/proc/sys/net/mptcp") / name).exists():
            line.near.sysctl(f"net.mptcp.{name}", value)
    options = ["--clients", NEAR_DEVICE, "--watch", "--report", reports(folder) / "report.json"]
    command = [built("longhaul"), "host", both.remote.config, *options]
    return Child(line.near.inside(command), folder / "watch.log")


def reports(folder: Path) -> Path:
    """The folder of the watch's report, where the remote looks for it. Beds may stand side by side."""
    return Path("/run/longhaul-host-watch") / f"test-{zlib.crc32(str(folder).encode()):08x}"


def longest_gap(parts: list[tuple[float, bytes]]) -> float:
    """Returns the longest time without a byte in a streamed response."""
    times = [at_s for at_s, _ in parts]
    return max((after - before for before, after in itertools.pairwise(times)), default=0.0)


def now_s() -> float:
    """The time of a monotonic clock."""
    return time.monotonic()
