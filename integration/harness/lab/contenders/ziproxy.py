"""Debian's ziproxy, which makes images smaller, with Squid's cache behind it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from harness.host.waiting import wait_for
from harness.net.topology import CLIENT_DEVICE

from .base import LinkContender, LinkTrack, intercept, rules
from .squid import running_squid

PORT, SQUID_PORTS = 3150, (3148, 3149)
CONFIGURATION = """\
Address = "127.0.0.1"
Port = {port}
TransparentProxy = true
NextProxy = "127.0.0.1"
NextPort = {squid}
ImageQuality = {{50,50,50,50}}
"""
"""Its defaults, except for the quality of images: that of the papers."""


class Ziproxy(LinkContender):
    """ziproxy in front, so that browsers get its images, and Squid between it and the origins."""

    name = "ziproxy-squid"
    title = "ziproxy and Squid"
    about = (
        "ziproxy makes JPEGs of quality 50 and compresses text; Squid behind it has its defaults. Port 80 is "
        "redirected to ziproxy. Https passes it by, routed."
    )
    schemes = ("http",)

    def missing(self) -> str | None:
        """Both are Debian packages."""
        absent = [name for name in ("ziproxy", "squid") if not shutil.which(name)]
        return f"{absent[0]} is not installed (Debian package {absent[0]})" if absent else None

    @contextmanager
    def started(self, track: LinkTrack) -> Iterator[None]:
        """Both run on the gateway. ziproxy has no mode for the foreground, so it is stopped by its own command."""
        folder = track.folder_of(self.name)
        config, number = folder / "ziproxy.conf", folder / "ziproxy.pid"
        config.write_text(CONFIGURATION.format(port=PORT, squid=SQUID_PORTS[0]))
        gateway = track.line.gateway
        # The redirected connections arrive at loopback.
        gateway.sysctl(f"net.ipv4.conf.{CLIENT_DEVICE}.route_localnet", 1)

        def listens() -> bool:
            return f":{PORT} " in gateway.run("ss", "-Hltn").stdout

        with running_squid(gateway, folder, SQUID_PORTS):
            gateway.run("ziproxy", "-d", "-c", config, "-p", number)
            try:
                wait_for(f"ziproxy on port {PORT}", listens, 20.0)
                yield
            finally:
                gateway.run("ziproxy", "-k", "-c", config, "-p", number)
                wait_for("the end of ziproxy", lambda: not listens(), 20.0)

    @contextmanager
    def engaged(self, track: LinkTrack) -> Iterator[None]:
        """Port 80 goes to ziproxy."""
        chain = intercept(CLIENT_DEVICE, f"tcp dport 80 dnat to 127.0.0.1:{PORT}")
        with rules(track.line.gateway, chain):
            yield
