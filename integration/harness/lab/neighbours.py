"""A bed for clients that share a slow link: direct, by a pair without shares, by a pair as it is, and by the pair of
the quick start."""

from __future__ import annotations

import json
import random
import string
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.boxes.pair import FAIR, PIPE_PORT, REDIRECTS, REMOTE_NAME, Ends, Pair, identity_of, pair, until_names_cross
from harness.boxes.pep import Pep, write_config
from harness.host.processes import Child
from harness.net.authority import Authority
from harness.net.topology import CLIENT, CLIENT_DEVICE, RESOLVER
from harness.origins.program import Origins, Site

from . import links
from .bed import CONGESTION_CONTROL, use_congestion_control
from .contenders.base import intercept, rules
from .init_pair import pair_of_init
from .line import FAR, NEAR_DEVICE, NEAR_HOME, Line
from .peers import PEERS, SPLIT_TCP, WIREGUARD

PROGRAM = Path(__file__).with_name("light_clients.py")
FAIR_QUEUE = "fair-queue"
ORIGINS = {"direct": CONGESTION_CONTROL, "direct-cubic": "cubic"} | dict.fromkeys(
    (FAIR_QUEUE, SPLIT_TCP, WIREGUARD), CONGESTION_CONTROL
)
"""The ways without Longhaul, and the congestion control of their origins and boxes. Those of a pair have that of
`direct`. In a fair queue, flows take turns at both ends of the link."""
QUEUES = {FAIR_QUEUE: {"down.fair": '"flow"', "up.fair": '"flow"'}}
QUICK_START = "quick-start"
WAYS = (*ORIGINS, "unshared", "fair", QUICK_START)
"""Without Longhaul, a pair with `link.fill: off`, a pair, and one with the files and the settings that the quick start
writes."""
CLIENTS = [CLIENT, *(f"192.0.2.{number}" for number in range(3, 18))]
"""The addresses of clients."""
SERVERS = {f"www{number}.example.org": f"203.0.113.{210 + number}" for number in range(7)}
"""The hosts of the pages. The last one has the downloads."""
BULK = "www6.example.org"
DOCUMENT_BYTES = 30_000
OTHER = "other.example"
"""A second remote of the ground."""
OTHER_CLIENTS = CLIENTS[-2:]
"""Its clients, if it runs."""
OTHER_PORTS = {80: 8081, 443: 8444}
"""Where it takes their connections."""


def light_page(fresh: str) -> dict[str, Any]:
    """A page like a light news page: 58 objects on 6 hosts, 211 KB. `fresh` makes its URLs new."""
    hosts = [name for name in SERVERS if name != BULK]
    sizes = [1200 + (number * 2654435761 % 4600) for number in range(57)]
    named = [(hosts[number % len(hosts)], size) for number, size in enumerate(sizes)]
    objects = [[host, SERVERS[host], f"/{size}/{fresh}/{number}.jpg"] for number, (host, size) in enumerate(named)]
    return {"document": [hosts[0], SERVERS[hosts[0]], f"/{DOCUMENT_BYTES}/{fresh}/page"], "objects": objects}


def light_document() -> str:
    """Returns the document of a light page in HTML, for browsers. The server puts a name in place of `FRESH`."""
    tags = [f'<img src="//{host}{path}?type=image/jpeg" alt="">' for host, _, path in light_page("FRESH")["objects"]]
    begin = '<!doctype html><html lang="en"><head><title>Light</title><link rel="icon" href="data:,"></head><body>'
    # Words between the images, which shrink little.
    room = (DOCUMENT_BYTES - len(begin) - sum(map(len, tags))) // len(tags)
    draw = random.Random(1)
    words = ("".join(draw.choices(string.ascii_letters + "   ", k=room - len("<p></p>"))) for _ in tags)
    return begin + "".join(f"<p>{text}</p>{tag}" for text, tag in zip(words, tags, strict=True)) + "</body></html>"


@dataclass
class NeighbourBed:
    """Everything runs."""

    folder: Path
    authority: Authority
    """Of the certificates of all servers."""
    line: Line
    way: str
    pair: Pair | None
    other: Pep | None = None
    """The second remote."""

    @property
    def running(self) -> Pair:
        """The pair."""
        assert self.pair, "direct"
        return self.pair

    def start(self, *jobs: dict[str, Any]) -> subprocess.Popen[str]:
        """Starts clients (light_clients.py). `finish` returns their results."""
        command = self.line.clients.inside([sys.executable, "-S", "-E", PROGRAM, "load", json.dumps(jobs)])
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    @staticmethod
    def finish(clients: subprocess.Popen[str]) -> list[dict[str, Any]]:
        """Returns the result of each client."""
        out, _ = clients.communicate(timeout=900)
        return json.loads(out)

    def load(self, *jobs: dict[str, Any]) -> list[dict[str, Any]]:
        """Clients side by side, to their end."""
        return self.finish(self.start(*jobs))

    def shares(self, streams: list[int], seconds: float, *, skip_s: float, **job: Any) -> list[int]:
        """Returns the bytes of clients with so many downloads each, all at the same time."""
        return [one["bytes"] for one in self.load(*_bulk(streams, seconds, skip_s=skip_s, **job))]

    def uploads(self, streams: list[int], seconds: float, *, skip_s: float, **job: Any) -> list[int]:
        """Returns the bytes that the server reads from clients with so many uploads each, all at the same time. Bytes
        that a client has sent may wait in the remote for a long time."""
        clients = self.start(*_bulk(streams, seconds, upload=True, **job))
        time.sleep(skip_s)
        before = self._received()
        time.sleep(seconds - skip_s)
        after = self._received()
        self.finish(clients)
        return [after.get(address, 0) - before.get(address, 0) for address in CLIENTS[: len(streams)]]

    def _received(self) -> dict[str, int]:
        command = self.line.internet.inside([sys.executable, "-S", "-E", PROGRAM, "received", SERVERS[BULK]])
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _bulk(streams: list[int], seconds: float, **job: Any) -> list[dict[str, Any]]:
    common = {"do": "bulk", "host": BULK, "to": SERVERS[BULK], "seconds": seconds}
    return [common | {"from": CLIENTS[number], "streams": count} | job for number, count in enumerate(streams)]


def jain(shares: list[int]) -> float:
    """Returns Jain's index of fairness: 1 if all are equal, 1/n if one has all."""
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 0.0


@contextmanager
def neighbour_bed(
    folder: Path,
    way: str,
    profile: str = "maritime",
    *,
    link: dict[str, str] | None = None,
    stated: dict[str, str] | None = None,
    second_remote: dict[str, str] | None = None,
    **split: Any,
) -> Iterator[NeighbourBed]:
    """Sets up the bed. `link` changes the emulated link, and `stated` is `link:` of all boxes where it differs. A
    second remote, with these changes of its `link:`, stands beside the first one and takes the connections of
    `OTHER_CLIENTS`. `split` changes the pair,
    as `write_pair` does. The pair of the quick start knows no changes."""
    assert way in WAYS, way
    authority = Authority(folder)
    records = {name: [address] for name, address in SERVERS.items()}
    site = Site(dns=[f"{RESOLVER}:53"], records=records)
    with ExitStack() as stack:
        changes = (link or {}) | QUEUES.get(way, {})
        line = stack.enter_context(Line(folder, profile, seed=1, changes=changes))
        for address in CLIENTS[1:]:
            line.clients.ip("address", "add", f"{address}/25", "dev", CLIENT_DEVICE)
        # Servers take it over when they begin to listen.
        use_congestion_control(line, ORIGINS.get(way, CONGESTION_CONTROL))
        stack.enter_context(Origins(site.write(folder / "site.json"), folder, line.internet))
        key = authority.issue(*SERVERS)
        (document := folder / "page.html").write_text(light_document())
        serve = [sys.executable, "-S", "-E", PROGRAM, "serve", key.cert, key.key, document, *SERVERS.values()]
        child = Child(line.internet.inside(serve), folder / "server.log")
        stack.callback(child.stop)
        child.wait_for_output("ready")
        both = other = None
        if way in PEERS:
            stack.enter_context(PEERS[way](folder, line))
        setting = stated or links.link(profile).setting
        if way == QUICK_START:
            trusted = authority.files.cert
            both = stack.enter_context(pair_of_init(folder, line, setting, trusted=trusted))
            both.until_names_cross()
        elif way not in ORIGINS:
            setting = setting | ({"fill": "off"} if way == "unshared" else FAIR)
            ends = Ends(line.near, NEAR_HOME, line.gateway, FAR)
            if second_remote is not None:
                split.setdefault("peers", [REMOTE_NAME, OTHER])
            both = stack.enter_context(pair(folder, ends, setting, steered=["listed.example.org"], **split))
            theirs = [
                f"ip saddr {address} tcp dport {port} redirect to :{own}"
                for address in OTHER_CLIENTS if second_remote is not None for port, own in OTHER_PORTS.items()
            ]  # fmt: skip
            stack.enter_context(rules(line.near, intercept(NEAR_DEVICE, *theirs, *REDIRECTS)))
            both.until_piped()
            if second_remote is not None:
                other = stack.enter_context(other_remote(folder, line, setting | second_remote))
            if way == "fair":
                both.until_names_cross()
        yield NeighbourBed(folder, authority, line, way, both, other)


@contextmanager
def side_by_side(folder: Path, *ways: str, profile: str = "maritime", **more: Any) -> Iterator[list[NeighbourBed]]:
    """Sets up a bed for each way, in folders below `folder`. `more` is that of `neighbour_bed`."""
    with ExitStack() as stack:
        beds = []
        for way in ways:
            (home := folder / way).mkdir()
            beds.append(stack.enter_context(neighbour_bed(home, way, profile, **more)))
        yield beds


@contextmanager
def other_remote(folder: Path, line: Line, setting: dict[str, str]) -> Iterator[Pep]:
    """Runs a second remote on the host of the first one, with a certificate of the same authority."""
    home = folder / "other"
    home.mkdir()
    listen = {"http": f"0.0.0.0:{OTHER_PORTS[80]}", "tls": f"0.0.0.0:{OTHER_PORTS[443]}", "dns": "127.0.0.1:5353"}
    config = {
        "role": "remote",
        "link": setting,
        "proxy": {"addresses": [NEAR_HOME]},
        "listen": {**listen, "metrics": "127.0.0.1:9154", "status": "off", "intercept": "redirect"},
        "split": {"peer": f"{FAR}:{PIPE_PORT}", **identity_of(OTHER, folder / "identities", FAR)},
    }
    with Pep(write_config(home, config), home, line.near) as remote:
        until_names_cross(remote)
        yield remote
