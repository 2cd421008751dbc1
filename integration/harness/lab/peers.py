"""Peers on a bed of neighbours: programs that an operator can put at the ends of the link instead of a pair."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from harness.host.processes import Child
from harness.host.waiting import Timeout, wait_for
from harness.net.namespaces import Namespace

from .contenders.base import rules
from .contenders.split_tcp import HAProxy
from .line import FAR, HOME, Line

SPLIT_TCP, WIREGUARD = "split-tcp", "wireguard"
PORT = 51820
MTU = 1420
"""The size that `wg-quick` sets on a path of 1500 bytes."""
PATIENCE_S = 20.0


def missing(way: str) -> str | None:
    """Returns why a way cannot run on this machine."""
    if way == SPLIT_TCP:
        return HAProxy().missing()
    if way == WIREGUARD and not (shutil.which("wireguard-go") and shutil.which("wg")):
        return "the command wireguard-go or wg is not installed (Debian packages wireguard-go, wireguard-tools)"
    return None


@contextmanager
def split_tcp(folder: Path, line: Line) -> Iterator[None]:
    """HAProxy on the ground ends the connections of clients, and opens others to the origins."""
    haproxy = HAProxy()
    with haproxy.running(folder, line), haproxy.redirected(line):
        yield


@contextmanager
def wireguard(folder: Path, line: Line) -> Iterator[None]:
    """A tunnel of WireGuard in user space carries all packets of clients between both ends of the link. It is up when
    this returns."""
    # The programs of all namespaces put their sockets into one folder.
    tag = secrets.token_hex(3)
    near, far = _End(line.near, f"wg{tag}n", folder), _End(line.gateway, f"wg{tag}f", folder)
    with near.started(), far.started():
        # Two ends that begin at once, a round trip apart, refuse each other. So the ship begins, as behind a NAT.
        far.set_peer(near.public_key, HOME)
        near.set_peer(far.public_key, "0.0.0.0/0", "endpoint", f"{FAR}:{PORT}", "persistent-keepalive", "25")
        line.near.ip("route", "replace", "default", "dev", near.device)
        line.gateway.ip("route", "replace", HOME, "dev", far.device)
        wait_for("a handshake of WireGuard", near.is_up, PATIENCE_S)
        yield


class _End:
    """One end of the tunnel."""

    def __init__(self, namespace: Namespace, device: str, folder: Path) -> None:
        self.device = device
        self._namespace = namespace
        self._log = folder / f"{device}.log"
        self._key = folder / f"{device}.key"
        self._key.write_text(namespace.run("wg", "genkey").stdout)
        self.public_key = namespace.run("sh", "-c", 'wg pubkey < "$0"', str(self._key)).stdout.strip()

    @contextmanager
    def started(self) -> Iterator[None]:
        """The program runs, and its device is up. Packets to it keep the largest segment that it carries."""
        with Child(self._namespace.inside(["wireguard-go", "--foreground", self.device]), self._log) as child:
            wait_for(f"the device {self.device}", lambda: self._has_device(child), PATIENCE_S)
            self._namespace.run("wg", "set", self.device, "listen-port", str(PORT), "private-key", str(self._key))
            self._namespace.ip("link", "set", self.device, "mtu", str(MTU), "up")
            clamp = f'oifname "{self.device}" tcp flags syn tcp option maxseg size set rt mtu;'
            chain = f"chain clamp {{ type filter hook forward priority mangle; {clamp} }}"
            with rules(self._namespace, chain, table="wireguard"):
                yield

    def _has_device(self, child: Child) -> bool:
        if child.process.poll() is not None:
            raise Timeout(f"wireguard-go ended: {child.output()[-2000:]}")
        return self._namespace.run("wg", "show", self.device, check=False).returncode == 0

    def set_peer(self, public_key: str, allowed: str, *more: str) -> None:
        """Sets the other end, and the addresses behind it."""
        self._namespace.run("wg", "set", self.device, "peer", public_key, "allowed-ips", allowed, *more)

    def is_up(self) -> bool:
        """Returns whether the other end has responded."""
        shown = self._namespace.run("wg", "show", self.device, "latest-handshakes").stdout.split()
        return len(shown) > 1 and shown[1] != "0"


PEERS: dict[str, Callable[[Path, Line], AbstractContextManager[None]]] = {SPLIT_TCP: split_tcp, WIREGUARD: wireguard}
"""By way."""
