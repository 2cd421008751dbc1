"""HAProxy and nginx on the gateway, as boxes that split TCP: the programs that a network already has."""

from __future__ import annotations

import shutil
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from harness.host.processes import Child
from harness.net.topology import CLIENT_DEVICE, RESOLVER

from ..line import Line
from .base import LinkContender, LinkTrack, intercept, rules, wait_for_port

STREAM_MODULE = Path("/usr/lib/nginx/modules/ngx_stream_module.so")


class SplitTcpPeer(LinkContender):
    """A program that listens on two ports, to which the gateway redirects ports 80 and 443."""

    ports: tuple[int, int]
    """For http and https."""

    @abstractmethod
    def command(self, folder: Path) -> list[str | Path]:
        """Writes the configuration into `folder`, and returns the command of the program in the foreground."""

    @contextmanager
    def running(self, folder: Path, line: Line) -> Iterator[None]:
        """The program runs on the gateway. It writes into `folder`."""
        with Child(line.gateway.inside(self.command(folder)), folder / f"{self.name}.log") as child:
            for port in self.ports:
                wait_for_port(line.gateway, port, child)
            yield

    def redirected(self, line: Line) -> AbstractContextManager[None]:
        """Both ports are redirected."""
        http, tls = self.ports
        chain = intercept(CLIENT_DEVICE, f"tcp dport 80 redirect to :{http}", f"tcp dport 443 redirect to :{tls}")
        return rules(line.gateway, chain)

    def started(self, track: LinkTrack) -> AbstractContextManager[None]:
        """The program runs on the gateway."""
        return self.running(track.folder_of(self.name), track.line)

    def engaged(self, track: LinkTrack) -> AbstractContextManager[None]:
        """Both ports are redirected."""
        return self.redirected(track.line)


class HAProxy(SplitTcpPeer):
    """HAProxy of Debian in mode tcp."""

    name = "haproxy"
    title = "HAProxy, split TCP"
    about = "HAProxy in mode tcp with its defaults, for ports 80 and 443. It asks the kernel for the origin's address."
    ports = (15180, 15143)

    def missing(self) -> str | None:
        """HAProxy is a Debian package."""
        return None if shutil.which("haproxy") else "the command haproxy is not installed (Debian package haproxy)"

    def command(self, folder: Path) -> list[str | Path]:
        """One proxy for each port, without servers."""
        listeners = "".join(f"listen on-{port}\n  bind 0.0.0.0:{port}\n  option transparent\n" for port in self.ports)
        timeouts = "".join(f"  timeout {what}\n" for what in ("connect 30s", "client 5m", "server 5m"))
        config = folder / "haproxy.cfg"
        config.write_text(f"defaults\n  mode tcp\n{timeouts}{listeners}")
        return ["haproxy", "-db", "-f", config]


class Nginx(SplitTcpPeer):
    """nginx of Debian: http by requests, https by the name in the TLS handshake."""

    name = "nginx"
    title = "nginx, split TCP"
    about = (
        "nginx with its defaults. It forwards http by the Host header, and https by the name in the TLS handshake. "
        "It cannot ask the kernel for the origin's address, so it looks each name up."
    )
    ports = (15280, 15243)

    def missing(self) -> str | None:
        """nginx and its stream module are Debian packages."""
        if shutil.which("nginx") and STREAM_MODULE.exists():
            return None
        return "nginx with its stream module is not installed (Debian packages nginx and libnginx-mod-stream)"

    def command(self, folder: Path) -> list[str | Path]:
        """One server for each port. Everything that nginx writes is in the folder."""
        http, tls = self.ports
        temporary = "".join(
            f"  {what}_temp_path {folder}/{what};\n" for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        config = folder / "nginx.conf"
        config.write_text(
            f"user root;\nload_module {STREAM_MODULE};\npid {folder}/pid;\nerror_log stderr;\nworker_processes 2;\n"
            "events { worker_connections 4096; }\n"
            f"stream {{\n  resolver {RESOLVER} ipv6=off;\n"
            f"  server {{ listen {tls}; ssl_preread on; proxy_pass $ssl_preread_server_name:443; }}\n}}\n"
            f"http {{\n  access_log off;\n  resolver {RESOLVER} ipv6=off;\n{temporary}"
            f"  server {{ listen {http}; location / {{ proxy_http_version 1.1; proxy_set_header Host $http_host; "
            "proxy_pass http://$http_host; } }\n}\n"
        )
        return ["nginx", "-c", config, "-e", "stderr", "-g", "daemon off;"]


def split_tcp_peers() -> tuple[LinkContender, ...]:
    """Both."""
    return HAProxy(), Nginx()
