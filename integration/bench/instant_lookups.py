"""Lookups of programs and of a browser on one machine, at a remote with `dns.instant: on`.

A browser visits new names. Meanwhile programs look up others, and a moment later the very names that the browser has
just visited. Names that must not be instant are visited as a browser does. Packets of all kinds go to the addresses.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.names_queries import Lookup, Pace, look_up, questions
from harness.lab.instant import InstantBed, instant_bed
from harness.lab.line import is_instant
from harness.net.sockets import socket_in
from harness.results.figures import at_most

TARGETS = [
    at_most("false_answers_to_programs", 0),
    at_most("nxdomain_hidden", 0),
    at_most("packets_to_the_range_on_the_link", 0),
]
LINK = "rural-lte"
LOOKUPS, QUICK_LOOKUPS = 10_000, 1_000
"""Lookups of programs. Half are of the names that the browser visits."""
AT_ONCE = 40
"""A browser and the programs together have as many lookups on the way as the pipe takes streams."""
GAP_S = 0.002
SPECIAL = [
    *(f"{'qwxzkj' * 2}{number:03}" for number in range(100)),
    *(f"host{number}.{suffix}" for number in range(20) for suffix in ("local", "test", "invalid", "lan", "home.arpa")),
    *(f"{number}.2.0.192.in-addr.arpa" for number in range(20)),
    *(f"_s{number}._tcp.example.org" for number in range(20)),
    *(f"wpad.site{number}.example.org" for number in range(20)),
]
"""Names that do not exist: single labels, special-use names, reverses, services, and names of discovery."""
PORTS = (22, 25, 53, 80, 123, 443, 853, 3478, 8080, 50000)


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Looks names up, and sends packets to the addresses."""
    half = (QUICK_LOOKUPS if quick else LOOKUPS) // 2
    alone = [f"p{number}.example.org" for number in range(half // 2)]
    both = [f"b{number}.example.org" for number in range(half // 2)]
    truth = {name: f"203.0.113.{60 + number % 190}" for number, name in enumerate([*alone, *both])}
    with instant_bed(folder, LINK, records={name: [address] for name, address in truth.items()}) as bed:
        bed.pair.until_piped()
        pace = Pace(pause_s=GAP_S, at_once=AT_ONCE)
        with ThreadPoolExecutor(2) as pool:
            browser = pool.submit(look_up, bed.line.clients, questions(both, "A", "HTTPS"), pace)
            programs = pool.submit(look_up, bed.line.clients, questions(alone, "A", "AAAA"), pace)
            visited, asked = browser.result(), programs.result()
        asked += look_up(bed.line.clients, questions(both, "A", "AAAA"), pace)
        special = look_up(bed.line.clients, questions(SPECIAL, "A", "HTTPS"), pace)
        instant = [one.addresses[0] for one in visited if any(map(is_instant, one.addresses))]
        send_all_kinds(bed, instant[:20])
        leaked, outcomes = bed.leaked(), bed.outcomes()
    wrong = [one for one in asked if false(one, truth)]
    hidden = [one for one in special if one.question.kind == "A" and one.code != "NXDOMAIN"]
    print(f"{len(instant)} of {len(both)} visits were instant; {outcomes}", flush=True)
    return {
        "false_answers_to_programs": len(wrong),
        "program_lookups": len(asked),
        "programs_without_an_answer": sum(one.failed for one in asked),
        "nxdomain_hidden": len(hidden),
        "packets_to_the_range_on_the_link": leaked,
        "visits_instant": len(instant) / len(both),
    }, {"outcomes": outcomes, "wrong": [str(one) for one in [*wrong, *hidden][:20]]}


def false(one: Lookup, truth: dict[str, str]) -> bool:
    """Returns true if a program got an address that is not the name's."""
    return one.question.kind == "A" and any(address != truth[one.question.name] for address in one.addresses)


def send_all_kinds(bed: InstantBed, addresses: Sequence[str]) -> None:
    """Sends packets of TCP, UDP and ICMP to each address."""
    for address in addresses:
        bed.line.clients.run("ping", "-c", "1", "-W", "1", address, check=False)
        for port in PORTS:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                with socket_in(bed.line.clients, kind) as sock, suppress(OSError):
                    sock.settimeout(0.2)
                    sock.connect((address, port))
                    sock.send(b"x")
                    sock.recv(1)
