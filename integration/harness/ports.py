"""Free ports on loopback."""

from __future__ import annotations

import socket
from contextlib import ExitStack


def free_ports(count: int, address: str = "127.0.0.1") -> list[int]:
    """Ports that nobody listens on, over TCP or UDP; distinct, because all are held until the last is found."""
    with ExitStack() as held:
        ports = []
        while len(ports) < count:
            tcp = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            udp = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            tcp.bind((address, 0))
            port = tcp.getsockname()[1]
            try:
                udp.bind((address, port))
            except OSError:
                continue
            ports.append(port)
        return ports
