"""Longhaul on the gateway in the role `edge`: with its defaults, with one of two techniques, and as in the papers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.boxes.pep import STEERED, Pep, derived, gateway_config, write_config
from harness.host.artifacts import built
from harness.net.namespaces import Namespace
from harness.net.topology import CLIENT_DEVICE, PROXY_RANGE

from .. import watches
from .base import LinkContender, LinkTrack, intercept, rules, sysctls


@dataclass
class Edge(LinkContender):
    """One variant. Each has its own addresses, so all variants run side by side and none is ever cold."""

    name: str
    title: str
    about: str
    sections: dict[str, Any] = field(default_factory=dict)
    """Sections of longhaul.yaml that differ from the defaults."""
    steering: bool = True
    """Its DNS server serves the clients."""
    interception: bool = True
    """The gateway redirects all web connections of clients to it."""
    addresses: int = 1
    secure: bool = True
    """Each of its addresses has a certificate: https and HTTP/2 to the proxy."""
    watches: int = watches.EDGE

    @contextmanager
    def started(self, track: LinkTrack) -> Iterator[None]:
        """Envoy and CoreDNS run."""
        with Pep(self.write_config(track), self._folder(track), track.line.gateway, trusted=track.authority.files.cert):
            yield

    @contextmanager
    def engaged(self, track: LinkTrack) -> Iterator[None]:
        """The gateway does what `longhaul host` prints: rules, the client route, kernel settings."""
        gateway, path = track.line.gateway, self._folder(track) / "longhaul.yaml"
        address, *shards = self._addresses(track)
        # Shards and those of a range are addresses of one listener.
        to = [*shards, *self._ranges()]
        own = tuple(f"ip daddr {one} tcp dport {port} dnat to {address}:{port}" for one in to for port in (80, 443))
        lines = []
        if self.interception:
            lines += [f"tcp dport {port} dnat to {address}:{port}" for port in (80, 443)]
        if self.steering:
            lines += [f"{protocol} dport 53 dnat to {address}:53" for protocol in ("udp", "tcp")]
        with ExitStack() as stack:
            stack.enter_context(rules(gateway, intercept(CLIENT_DEVICE, *lines, own=own)))
            stack.enter_context(sysctls(gateway, tcp_slow_start_after_idle=0))
            track.line.set_client_route(*route_options(path))
            stack.callback(track.line.set_client_route)
            yield

    def _folder(self, track: LinkTrack) -> Path:
        return track.folder_of(self.name)

    def _addresses(self, track: LinkTrack) -> list[str]:
        # A file in its folder holds them: a contender serves many beds and has no state.
        note = self._folder(track) / "addresses"
        if not note.exists():
            note.write_text(" ".join(track.take_addresses(self.addresses)))
        return note.read_text().split()

    def _ranges(self) -> list[str]:
        return [PROXY_RANGE] if self.steering else []

    def write_config(self, track: LinkTrack) -> Path:
        folder, addresses = self._folder(track), self._addresses(track)
        # All addresses share one certificate. A browser names no address in its first packet, so none can be chosen.
        terminate = [{"names": addresses, **track.authority.issue(*addresses).as_dict()}]
        sections: dict[str, Any] = {
            "link": track.link.setting,
            "proxy": {"addresses": [*addresses, *self._ranges()], "secure_names": addresses if self.secure else []},
            "listen": {
                "http": "{}:80", "tls": "{}:443", "dns": "{}:53" if self.steering else "off",
                "metrics": f"127.0.0.1:{track.take_port()}",
            },
            **({"tls": {"terminate": terminate}} if self.secure else {}),
            **self.sections,
        }  # fmt: skip
        sections["listen"] = {key: value.format(addresses[0]) for key, value in sections["listen"].items()}
        if not self.steering:
            sections["dns"] = {}
        config = gateway_config(folder, None, **sections)
        return write_config(folder, config, track.hosts)


def route_options(config: Path) -> list[str]:
    """The options of the client route that `longhaul check` derives, in the syntax of `ip route`."""
    values = derived(config)
    options = ["initcwnd", values["initial_window"], "initrwnd", values["initial_window"]]
    return options if values["window_clamp"] == "off" else [*options, "cwnd", "lock", values["window_clamp"]]


def receive_buffers(config: Path, host: Namespace, device: str) -> dict[str, str]:
    """The `tcp_rmem` that `longhaul host` sets on a remote. The first window that the remote offers is half of the
    default. Empty if the host has this value already."""
    script = host.run(built("longhaul"), "host", config, "--clients", device).stdout
    return dict(re.findall(r"^sysctl -w net\.ipv4\.(tcp_rmem)='(.+)'", script, re.MULTILINE))


def edge_contenders() -> tuple[LinkContender, ...]:
    """All variants."""
    return (
        Edge(
            "longhaul-url", "Longhaul, url only",
            "Longhaul's url rewriting with its defaults, no DNS steering: names are asked of the resolver.",
            steering=False,
        ),
        Edge(
            "longhaul-dns", "Longhaul, dns only",
            "Longhaul's DNS steering with its defaults; pages are passed on unchanged (rewrite.level: off).",
            sections={"rewrite": {"level": "off"}},
        ),
        Edge(
            "longhaul-edge", "Longhaul, edge",
            "Longhaul as one box with its defaults: what it does is derived from the link's two numbers.",
        ),
        Edge(
            "longhaul-replace", "Longhaul, edge, mode: replace",
            "Longhaul as one box with `dns.mode: replace`: DNS responses have the proxy's addresses alone.",
            sections={"dns": {"domains": [STEERED], "mode": "replace"}},
        ),
        Edge(
            "longhaul-edge-full", "Longhaul, edge, level full", "Longhaul as one box at level full.",
            sections={"rewrite": {"level": "full"}},
        ),
        Edge(
            "longhaul-paper", "Longhaul, as the paper",
            "Url rewriting to one http address, as in the paper of 2004, whatever the link model advises.",
            sections={"rewrite": {"level": "safe", "target": "http"}}, steering=False, secure=False,
        ),
        *(
            Edge(
                f"longhaul-http-{count}", f"Longhaul, {count} http address{'es' if count > 1 else ''}",
                f"Url rewriting to {count} http addresses, whatever the link model advises: shards.",
                sections={"rewrite": {"level": "safe", "target": "http"}},
                steering=False, secure=False, addresses=count,
            )
            for count in (1, 2, 4, 6)
        ),
        *(
            Edge(
                f"longhaul-https-{count}", f"Longhaul, {count} https addresses",
                f"Url rewriting to {count} https addresses, as with defaults but for their number: shards over HTTP/2.",
                sections={"rewrite": {"level": "safe", "target": "https"}}, addresses=count,
            )
            for count in (2, 4)
        ),
    )  # fmt: skip
