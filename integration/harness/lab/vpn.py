"""OpenVPN over TCP between two namespaces, and a download inside it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.clients.commands import Curl
from harness.host.processes import Child
from harness.net.authority import Authority
from harness.net.namespaces import Namespace

PORT = 993
"""A port of `auto`. VPNs over TCP take such ports, because firewalls let them pass."""
ENDS = ("10.250.0.1", "10.250.0.2")
"""The addresses inside the tunnel: the server's, and the client's."""
UP = "Initialization Sequence Completed"
PATIENCE_S = 40


@dataclass(frozen=True)
class Vpn:
    """A tunnel that stands."""

    curl: Curl
    handshake_s: float
    """The time until it stood."""

    def get(self, size: int) -> float:
        """Returns the seconds of a download by a new connection inside. Raises if it is not whole."""
        began = time.monotonic()
        response = self.curl.get(f"http://{ENDS[0]}:8000/{size}", timeout_s=PATIENCE_S)
        if (response.status, len(response.body)) != (200, size):
            raise RuntimeError(f"a download inside the VPN is not whole: {response.status}, {len(response.body)} bytes")
        return time.monotonic() - began


@contextmanager
def vpn(folder: Path, server: Namespace, client: Namespace, address: str, sizes: list[int]) -> Iterator[Vpn]:
    """Opens a tunnel to `address`. A web server at its far end has a file of each size."""
    authority = Authority(folder)
    common = ["openvpn", "--dev", "tun", "--verb", "3", "--ca", authority.files.cert, "--x509-username-field", "OU"]
    keys = [authority.issue(f"{end}.vpn.example.org") for end in ("server", "client")]
    own = [["--cert", key.cert, "--key", key.key] for key in keys]
    far = ["--proto", "tcp-server", "--local", address, "--lport", PORT, "--tls-server", "--dh", "none"]
    near = ["--proto", "tcp-client", "--remote", address, PORT, "--nobind", "--tls-client"]
    files = folder / "inside"
    files.mkdir(exist_ok=True)
    for size in sizes:
        (files / str(size)).write_bytes(bytes(size))
    with ExitStack() as stack:

        def start(name: str, namespace: Namespace, line: list[object]) -> Child:
            child = Child(namespace.inside([str(word) for word in line]), folder / f"vpn-{name}.log")
            stack.callback(child.stop)
            return child

        start("server", server, [*common, *own[0], *far, "--ifconfig", *ENDS]).wait_for_output("Listening for incoming")
        began = time.monotonic()
        ready = start("client", client, [*common, *own[1], *near, "--ifconfig", *reversed(ENDS)])
        ready.wait_for_output(UP, PATIENCE_S)
        handshake_s = time.monotonic() - began
        web = [sys.executable, "-m", "http.server", "--bind", ENDS[0], "--directory", files, 8000]
        start("web", server, ["env", "PYTHONUNBUFFERED=1", *web]).wait_for_output("Serving HTTP")
        yield Vpn(Curl(folder, client), handshake_s)
