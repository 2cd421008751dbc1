"""A night of a remote's memory of names: hours pass for it, in the bed's seconds.

CoreDNS is a Go program, which asks the kernel for the time without a library. So it cannot have a clock of its own, as
Envoy has in `harness.host.clock`. A remote that is stopped knows the past by its file of names alone. With its times
moved back, CoreDNS starts as by a clock that was moved on.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path

MAGIC = b"longhaul names 1\n"
"""The format is that of coredns-plugin/remember/store/file.go."""
HEADER = struct.Struct("<HBIII")
"""The length of the response, flags, and times in seconds: when it came, when its TTL ends, when it is useless."""
END = struct.Struct("<H")
SUM = struct.Struct("<I")
CASTAGNOLI = 0x82F63B78
KEPT = Path("kept") / "names.bin"
"""The file of names, in the state folder of a remote."""


def age(state: Path, by_s: int) -> int:
    """Makes all names of a stopped remote older. Returns the number of responses in its file."""
    file = state / KEPT
    records = list(records_of(file.read_bytes()))
    aged = [
        HEADER.pack(length, flags, *(max(0, time_s - by_s) for time_s in times)) + wire
        for (length, flags, *times), wire in records
    ]
    whole = MAGIC + b"".join(aged) + END.pack(0)
    # In place: the file keeps its owner and its permissions.
    file.write_bytes(whole + SUM.pack(castagnoli(whole)))
    return len(records)


def records_of(content: bytes) -> Iterator[tuple[tuple[int, ...], bytes]]:
    """Yields the header and the response of each record. Raises `ValueError` if the file is not whole."""
    body, end = content[: -SUM.size], content[-SUM.size :]
    if not body.startswith(MAGIC) or SUM.unpack(end) != (castagnoli(body),):
        raise ValueError("the file of names is not whole, or of another format than this program knows")
    at = len(MAGIC)
    while END.unpack_from(body, at) != (0,):
        header = HEADER.unpack_from(body, at)
        at += HEADER.size + header[0]
        yield header, body[at - header[0] : at]


def castagnoli(content: bytes) -> int:
    """Returns the CRC-32C."""
    table = _table()
    value = 0xFFFFFFFF
    for byte in content:
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


@cache
def _table() -> list[int]:
    rows = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (CASTAGNOLI if value & 1 else 0)
        rows.append(value)
    return rows
