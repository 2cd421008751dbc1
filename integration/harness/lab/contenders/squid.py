"""Squid, as a transparent proxy on the gateway or beside the clients, and as the proxy in the browser's settings."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.host.processes import Child
from harness.net.namespaces import Namespace
from harness.net.topology import CLIENT_DEVICE, PROXY, RESOLVER

from ..line import NEAR_DEVICE
from .base import LinkContender, LinkTrack, intercept, rules

CONFIGURATION = """\
http_port {told}
http_port {transparent} intercept
dns_nameservers {resolver}
http_access allow all
acl CONNECT method CONNECT
cache_mem 256 MB
maximum_object_size_in_memory 8 MB
client_persistent_connections on
server_persistent_connections on
access_log none
cache_log /dev/null
pid_filename none
coredump_dir /
cache_effective_user proxy
pinger_enable off
shutdown_lifetime 0 seconds
visible_hostname squid.test
via on
"""
"""Squid's defaults, except for a memory that holds every page and the settings that its service needs."""


class Squid(LinkContender):
    """Squid of Debian, run in the foreground, never as a service."""

    device = CLIENT_DEVICE
    """The device of its host towards the clients."""

    def __init__(self, told: bool) -> None:
        self.told = told
        self.name = "squid-explicit" if told else "squid-transparent"
        self.title = "Squid, explicit" if told else "Squid, transparent"
        self.about = (
            "Squid with its defaults; the browser is configured to use it (--proxy-server), https by CONNECT."
            if told
            else "Squid with its defaults; port 80 is redirected to it. Https passes it by, routed."
        )
        self.schemes = ("http", "https") if told else ("http",)
        self._ports = (3128, 3129) if told else (3138, 3139)

    def host(self, track: LinkTrack) -> Namespace:
        """Returns the place of Squid."""
        return track.line.gateway

    def missing(self) -> str | None:
        """Squid is a Debian package."""
        return None if shutil.which("squid") else "the command squid is not installed (Debian package squid)"

    @contextmanager
    def started(self, track: LinkTrack) -> Iterator[None]:
        """Squid runs on its host."""
        with running_squid(self.host(track), track.folder_of(self.name), self._ports):
            yield

    @contextmanager
    def engaged(self, track: LinkTrack) -> Iterator[None]:
        """Squid's host redirects port 80, unless the browser's settings name the proxy."""
        if self.told:
            yield
            return
        with rules(self.host(track), intercept(self.device, f"tcp dport 80 redirect to :{self._ports[1]}")):
            yield

    def flags(self, track: LinkTrack) -> tuple[str, ...]:  # noqa: ARG002 - the address is always the same
        """The browser's setting."""
        return (f"--proxy-server=http://{PROXY}:{self._ports[0]}",) if self.told else ()


class SquidBesideClients(Squid):
    """Squid at the clients' end of the link, without a setting of the browser."""

    device = NEAR_DEVICE

    def __init__(self) -> None:
        super().__init__(told=False)
        self.name, self.title = "squid", "Squid beside the clients"
        self.about = "Squid with its defaults at the clients' end of the link; port 80 is redirected to it."

    def host(self, track: LinkTrack) -> Namespace:
        """The near box."""
        return track.line.near


@contextmanager
def running_squid(host: Namespace, folder: Path, ports: tuple[int, int]) -> Iterator[None]:
    """Runs Squid, with a port for clients that know it and one for intercepted connections."""
    config = folder / "squid.conf"
    told, transparent = ports
    config.write_text(CONFIGURATION.format(told=told, transparent=transparent, resolver=RESOLVER))
    # The service's name is the name of its shared memory, and other beds have a Squid, too.
    service = f"lh{os.getpid()}p{told}"
    line = ["squid", "-N", "-d1", "-n", service, "-f", config]
    with Child(host.inside(line), folder / "squid.log") as child:
        child.wait_for_output("Accepting NAT intercepted")
        yield


def squid_contenders() -> tuple[LinkContender, ...]:
    """Both."""
    return Squid(told=False), Squid(told=True)
