"""Free ports on loopback."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from pathlib import Path

LOWEST = 10_000
"""Smaller numbers belong to well-known programs and to the demo."""
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int, address: str = "127.0.0.1") -> list[int]:
    """Finds distinct ports without a listener, over TCP or UDP. The kernel does not assign these to programs that bind
    to port 0, so no program gets one by chance."""
    highest = int(EPHEMERAL.read_text().split()[0])
    with ExitStack() as held:
        ports = []
        for port in random.sample(range(LOWEST, highest), highest - LOWEST):
            tcp = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            udp = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            try:
                tcp.bind((address, port))
                udp.bind((address, port))
            except OSError:
                continue
            ports.append(port)
            if len(ports) == count:
                return ports
    raise OSError(f"no {count} free ports between {LOWEST} and {highest}")


def is_open(port: int, address: str = "127.0.0.1") -> bool:
    """Returns true if a program accepts TCP connections."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((address, port)) == 0
