"""Free ports on loopback."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from itertools import cycle
from pathlib import Path

LOWEST = 10_000
"""Smaller numbers belong to well-known programs and to the demo."""
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int, address: str = "127.0.0.1") -> list[int]:
    """Finds distinct ports without a listener, over TCP or UDP.

    The kernel does not assign these to programs that bind to port 0. A port comes again only after all others, because
    a caller may bind its ports much later.
    """
    with ExitStack() as held:
        ports = []
        for port, _ in zip(candidates(), range(len(all_of_this_worker())), strict=False):
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
    raise OSError(f"no {count} free ports of {len(all_of_this_worker())}")


@cache
def candidates() -> Iterator[int]:
    """Returns the ports of this process in random order, without end."""
    ports = list(all_of_this_worker())
    return cycle(random.sample(ports, len(ports)))


@cache
def all_of_this_worker() -> range:
    """Returns the ports below the kernel's own. Each of two workers of a test run has every second port."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return range(LOWEST + worker % workers, int(EPHEMERAL.read_text().split()[0]), workers)


def is_open(port: int, address: str = "127.0.0.1") -> bool:
    """Returns true if a program accepts TCP connections."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((address, port)) == 0
