#!/usr/bin/env python3
"""operator_forwarder.py ADDRESS RESOLVER: a resolver at ADDRESS that forwards each query over UDP to RESOLVER."""

from __future__ import annotations

import socket
import sys
import threading


def forward(query: bytes, client: tuple[str, int], server: socket.socket, resolver: str) -> None:
    """Asks once, and passes the response on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(5)
        asking.sendto(query, (resolver, 53))
        try:
            server.sendto(asking.recv(4096), client)
        except OSError:
            return


def main() -> None:
    """Serves until it is stopped."""
    address, resolver = sys.argv[1:3]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 53))
        while True:
            query, client = server.recvfrom(4096)
            threading.Thread(target=forward, args=(query, client, server, resolver), daemon=True).start()


if __name__ == "__main__":
    main()
