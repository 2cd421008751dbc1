"""Malformed DNS messages. The server stays up, and no response is much larger than its question."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Callable

from harness.net.sockets import socket_in
from harness.net.topology import RESOLVER

from ..beds import Target
from ..cases import Case

AMPLIFICATION = 4.0
"""Bytes of a response for each byte of a question, at most."""


def question(name: str, kind: int = 1, klass: int = 1, flags: int = 0x0100, number: int = 1) -> bytes:
    """A DNS question (RFC 1035, section 4.1)."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".") if label)
    return struct.pack(">6H", number, flags, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", kind, klass)


def _ask(target: Target, message: bytes, timeout_s: float = 0.3) -> bytes:
    with socket_in(target.clients, socket.SOCK_DGRAM) as asks:
        asks.settimeout(timeout_s)
        asks.sendto(message, (RESOLVER, 53))
        try:
            return asks.recv(65535)
        except OSError:
            return b""


def _is_answered(target: Target) -> bool:
    return any(len(_ask(target, question("hostile.example.org"), 5.0)) > 12 for _ in range(3))


def _mutations(seed: int, count: int) -> Callable[[Target], str]:
    def attack(target: Target) -> str:
        chance = random.Random(seed)
        base = [question("hostile.example.org", kind) for kind in (1, 28, 65, 255, 250, 41)]
        worst = 0.0
        for _ in range(count):
            message = bytearray(chance.choice(base))
            for _ in range(chance.randint(1, 6)):
                where = chance.randrange(len(message))
                if chance.random() < 0.5:
                    message[where] = chance.randrange(256)
                elif chance.random() < 0.5:
                    del message[where:]
                    message += bytes(chance.randrange(256) for _ in range(chance.randint(1, 40)))
                else:
                    message[where:where] = bytes([0xC0, chance.randrange(256)])
            reply = _ask(target, bytes(message), 0.05)
            worst = max(worst, len(reply) / max(1, len(message)))
        if worst > AMPLIFICATION:
            return f"a response had {worst:.1f} times the bytes of its question"
        return "" if _is_answered(target) else "no question is answered any more"

    return attack


FORMS = {
    "a pointer to itself": struct.pack(">6H", 1, 0x0100, 1, 0, 0, 0) + b"\xc0\x0c" + struct.pack(">2H", 1, 1),
    "a label of 64 bytes": struct.pack(">6H", 1, 0x0100, 1, 0, 0, 0)
    + b"\x40"
    + b"a" * 64
    + b"\0"
    + struct.pack(">2H", 1, 1),
    "65535 questions": struct.pack(">6H", 1, 0x0100, 65535, 0, 0, 0) + question("hostile.example.org")[12:],
    "no question": struct.pack(">6H", 1, 0x0100, 0, 0, 0, 0),
    "a response": question("hostile.example.org", flags=0x8180),
    "an update": question("hostile.example.org", flags=0x2800),
    "class ANY": question("hostile.example.org", klass=255),
    "type ANY": question("hostile.example.org", kind=255),
    "zone transfer": question("example.org", kind=252),
    "one byte": b"\0",
    "a name of 255 bytes": question(".".join(["a" * 61] * 4)),
}


def _form(message: bytes) -> Callable[[Target], str]:
    def attack(target: Target) -> str:
        reply = _ask(target, message)
        if len(reply) > AMPLIFICATION * max(len(message), 12):
            return f"{len(reply)} bytes in response to {len(message)}"
        return "" if _is_answered(target) else "no question is answered any more"

    return attack


CASES = [
    *(Case(name, _form(message)) for name, message in FORMS.items()),
    Case("60 mutations", _mutations(1, 60)),
    Case("1,500 mutations", _mutations(2, 1500), is_long=True),
]
