#!/usr/bin/env python3
"""operator_clients.py LOG CA [large]: users behind the ship, who look up names and load pages without a pause. Each
attempt is a line of JSON in LOG. It runs in the clients' namespace, and needs the standard library alone."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable

RESOLVER, WWW = "203.0.113.53", "www.example.org"
OTHERS = 4000
"""The names n0.example.org and so on, of which each lookup takes a new one: a cache cannot help."""
PATIENCE_S = 20.0
"""The time after which a user gives up."""
DNS_PATIENCE_S = 5.0


def look_up(name: str = WWW) -> str:
    """Looks up the address of a name. The box takes the query on its way to the resolver."""
    number = random.randrange(1 << 16)
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(DNS_PATIENCE_S)
        asking.sendto(struct.pack(">6H", number, 0x100, 1, 0, 0, 0) + labels + b"\0\0\x01\0\x01", (RESOLVER, 53))
        while True:
            said = asking.recv(4096)
            if struct.unpack(">H", said[:2])[0] == number:
                break
    code, answers = said[3] & 15, struct.unpack(">H", said[6:8])[0]
    if code or not answers:
        raise OSError(f"code {code}, {answers} answers")
    return socket.inet_ntoa(said[-4:])


def load(scheme: str, path: str, context: ssl.SSLContext, name: str = WWW) -> None:
    """Loads an object, with a connection of its own. An object that breaks off is an error."""
    address = look_up(name)
    there = socket.create_connection((address, 443 if scheme == "https" else 80), PATIENCE_S)
    with context.wrap_socket(there, server_hostname=name) if scheme == "https" else there as stream:
        stream.sendall(f"GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
        response = http.client.HTTPResponse(stream)
        response.begin()
        body = response.read()
        if response.status != 200 or not body:
            raise OSError(f"status {response.status}, {len(body)} bytes")


def repeat(kind: str, each_s: float, once: Callable[[], object], log: Callable[[str], None]) -> None:
    """Does it again and again, at most every `each_s`, and writes each outcome."""
    while True:
        began, ok, why = time.time(), True, ""
        try:
            once()
        except (OSError, http.client.HTTPException) as error:
            ok, why = False, f"{type(error).__name__}: {error}"
        took = time.time() - began
        log(json.dumps({"began": began, "kind": kind, "ok": ok, "s": round(took, 3), "why": why}))
        time.sleep(max(0.1, each_s - took))


def main() -> None:
    """Runs until it is stopped."""
    context = ssl.create_default_context(cafile=sys.argv[2])
    encrypted = sys.argv[3:] == ["doh"]
    numbers = itertools.count(random.randrange(OTHERS))
    lock = threading.Lock()
    with open(sys.argv[1], "a", buffering=1, encoding="utf-8") as out:  # noqa: PTH123 - for any Python

        def log(line: str) -> None:
            with lock:
                out.write(line + "\n")

        plans: list[tuple[str, float, Callable[[], object]]] = [
            ("dns", 1.0, lambda: look_up(f"n{next(numbers) % OTHERS}.example.org")),
            ("http", 1.0, lambda: load("http", "/", context)),
            ("https", 2.0, lambda: load("https", "/", context)),
            ("large", 4.0, lambda: load("https", "/large.bin", context)),
        ]
        if encrypted:
            # Another client, whose browser sends its queries to a resolver over https.
            plans = [("doh", 1.0, lambda: load("https", "/dns-query", context, "dns.google"))]
        for plan in plans:
            threading.Thread(target=repeat, args=(*plan, log), daemon=True).start()
        threading.Event().wait()


if __name__ == "__main__":
    main()
