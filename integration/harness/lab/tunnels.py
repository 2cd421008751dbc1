"""A bed for connections that pass unread: a link, a box or a pair on it, and a server that ends them on request."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.boxes.pair import FAIR, REDIRECTS, Ends, Pair, pair
from harness.boxes.pep import Pep, gateway_config, write_config
from harness.host.artifacts import built
from harness.host.processes import Child
from harness.net.authority import Authority
from harness.net.namespaces import Namespace
from harness.net.topology import CLIENT_DEVICE, RESOLVER
from harness.origins.program import Origins, Site

from . import links
from .contenders.base import intercept, rules
from .line import FAR, NEAR_DEVICE, NEAR_HOME, Line

WAYS = ("direct", "edge", "pair")
"""Without Longhaul, one box, and a pair. The link decides whether a pair has warm connections or warm streams."""
ENDS = Path(__file__).with_name("tunnel_ends.py")
SERVER, SPEAKS_FIRST = "203.0.113.200", "203.0.113.201"
NAME = "tunnel-ends.example.org"
"""The server's name."""
UNDERSCORED = "tunnel_ends.example.org"
"""Another name of the server."""


@dataclass
class TunnelBed:
    """Everything runs."""

    line: Line
    way: str
    rtt_s: float
    """The round trip of the link."""
    log: Path
    """Lines of JSON: what the server saw of uploads and WebSockets."""
    boxes: dict[str, Pep]
    """Longhaul on each box, by the box's role."""
    pair: Pair | None = None
    """Both ends of a pair."""

    def start(self, **ask: Any) -> subprocess.Popen[str]:
        """Starts a client. `finish` returns its result."""
        ask = {"address": SERVER, "port": 443, "name": NAME} | ask
        command = self.line.clients.inside([sys.executable, "-S", "-E", ENDS, "ask", json.dumps(ask)])
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    @staticmethod
    def finish(client: subprocess.Popen[str], timeout_s: float = 900) -> dict[str, Any]:
        """Returns the result of a client."""
        out, _ = client.communicate(timeout=timeout_s)
        return json.loads(out)

    def ask(self, **ask: Any) -> dict[str, Any]:
        """One client, to its end."""
        return self.finish(self.start(**ask))

    def seen(self) -> list[dict[str, Any]]:
        """Returns the lines that the server has written so far."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def counters(self, *parts: str) -> dict[str, float]:
        """Counters of the boxes whose names contain one of `parts`, without those that are 0."""
        found = {}
        for box, pep in self.boxes.items():
            for name, value in pep.metrics().items():
                if value and any(part in name for part in parts):
                    found[f"{box}:{name}"] = value
        return found


@contextmanager
def tunnel_bed(
    folder: Path,
    way: str,
    profile: str = "maritime",
    *,
    link: dict[str, str] | None = None,
    served: Sequence[int] = (),
    prepare: Callable[[Line], None] | None = None,
    congestion: str | None = None,
    **sections: Any,
) -> Iterator[TunnelBed]:
    """Sets up the bed. `sections` replace sections of each box's file. `link` changes the emulated link. With `tcp`,
    the rules of `longhaul host` lead clients' traffic to a remote. The server has the ports of `served`, too, and
    `congestion` is its congestion control. `prepare` changes the namespaces before anything runs in them."""
    assert way in WAYS, way
    authority = Authority(folder)
    site = Site(dns=[f"{RESOLVER}:53"], records={NAME: [SERVER], UNDERSCORED: [SERVER]})
    with ExitStack() as stack:
        line = stack.enter_context(Line(folder, profile, seed=1, changes=link))
        if prepare:
            prepare(line)
        stack.enter_context(Origins(site.write(folder / "site.json"), folder, line.internet))
        log = folder / "server.jsonl"
        key = authority.issue("server.example.org")
        server = line.internet.inside(
            [
                sys.executable,
                "-S",
                "-E",
                ENDS,
                "serve",
                SERVER,
                SPEAKS_FIRST,
                key.cert,
                key.key,
                log,
                *map(str, (80, 443, *served)),
                *(["--congestion", congestion] if congestion else []),
            ]
        )
        child = Child(server, folder / "server.log")
        stack.callback(child.stop)
        child.wait_for_output("ready")
        boxes, both = {}, None
        setting = links.link(profile).setting
        if way == "edge":
            config = gateway_config(folder, None, link=setting, dns={}, **sections)
            config["listen"]["dns"] = "off"
            pep = stack.enter_context(Pep(write_config(folder, config), folder, line.gateway))
            tcp = [one for one in REDIRECTS if "53" not in one]
            stack.enter_context(rules(line.gateway, intercept(CLIENT_DEVICE, *tcp)))
            boxes = {"edge": pep}
        elif way != "direct":
            both = stack.enter_context(_pair(folder, line, FAIR | setting, sections))
            if "tcp" in sections:
                apply_rules(line.near, both.remote.config, folder / "host.json")
            else:
                stack.enter_context(rules(line.near, intercept(NEAR_DEVICE, *REDIRECTS)))
            boxes = {"remote": both.remote, "ground": both.ground}
            both.until_piped()
        yield TunnelBed(line, way, links.link(profile).rtt_ms / 1000, log, boxes, both)


def apply_rules(near: Namespace, config: Path, record: Path) -> None:
    """Applies the packet rules of `longhaul host` to the remote's host. They end with its namespace."""
    near.run(built("longhaul"), "host", config, "--clients", NEAR_DEVICE, "--apply", "--record", record)


def _pair(folder: Path, line: Line, setting: dict[str, str], sections: dict[str, Any]) -> Any:
    ends = Ends(line.near, NEAR_HOME, line.gateway, FAR)
    split = sections.pop("split", {})
    return pair(folder, ends, setting, steered=["listed.example.org"], **sections, **split)
