"""Makes the kernel forget all connections that it tracks in this network namespace. `Namespace.forget_connections` runs
it inside, because a thread of Python 3.11 cannot enter a namespace."""

from __future__ import annotations

import os
import socket
import struct
import sys

NETLINK_NETFILTER = 12
DELETE_CONNECTIONS = 1 << 8 | 2
"""`NFNL_SUBSYS_CTNETLINK` and `IPCTNL_MSG_CT_DELETE`. A message that names no connection means all of them."""
REQUEST, ACKNOWLEDGE = 1, 4
HEADER = struct.Struct("=IHHII")
FAMILY = struct.pack("=BBH", socket.AF_UNSPEC, 0, 0)


def forget_all() -> None:
    """Deletes the entries. Raises OSError if the kernel refuses."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as netlink:
        length = HEADER.size + len(FAMILY)
        netlink.send(HEADER.pack(length, DELETE_CONNECTIONS, REQUEST | ACKNOWLEDGE, 1, 0) + FAMILY)
        (error,) = struct.unpack_from("=i", netlink.recv(4096), HEADER.size)
    if error:
        raise OSError(-error, os.strerror(-error))


if __name__ == "__main__":
    sys.exit(forget_all())
