"""Sockets inside a namespace, for clients that a test plays itself."""

from __future__ import annotations

import ctypes
import os
import socket
import threading

from .namespaces import Namespace

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def enter(namespace: Namespace) -> None:
    """Moves the calling thread into a namespace, until the thread's end. Its new sockets are there."""
    handle = os.open(f"/run/netns/{namespace.name}", os.O_RDONLY)
    try:
        if _libc.setns(handle, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {namespace.name}")
    finally:
        os.close(handle)


def socket_in(namespace: Namespace, kind: int = socket.SOCK_STREAM) -> socket.socket:
    """Opens a socket in a namespace. A separate thread enters the namespace, so that the caller's thread stays in its
    own."""
    made: list[socket.socket | OSError] = []

    def make() -> None:
        try:
            enter(namespace)
            made.append(socket.socket(socket.AF_INET, kind))
        except OSError as reason:
            made.append(reason)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        raise made[0]
    return made[0]


def connected(
    namespace: Namespace,
    address: str,
    port: int,
    *,
    timeout_s: float = 20.0,
    receive_bytes: int | None = None,
    source: str = "",
) -> socket.socket:
    """Opens a TCP connection from a namespace. `receive_bytes` limits the kernel's read-ahead for a slow client.
    `source` is the address of one of several clients."""
    made = socket_in(namespace)
    made.settimeout(timeout_s)
    if receive_bytes:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    if source:
        made.bind((source, 0))
    made.connect((address, port))
    return made
