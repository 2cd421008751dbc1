"""A hostile client and a hostile resolver, and what another remote then gets before it asks.

The client sits behind a remote. It looks up the names of a page, each time followed by names of its own, from one
address. Its queries have forged options, as if they belonged to other clients and streams. It also tries to open the
ground's stream of names. The resolver adds false addresses of other names to each response. Meanwhile honest clients
of three other remotes visit the page. Then a client of a new remote looks up the page alone.

A name counts as poisoned if the new remote has another response than the resolver's own for it, or if only the hostile
client looked it up and the new remote was sent it. The run fails without the names that the honest clients taught. In
the end the hostile client attacks from a second remote, where it counts as a second client. A remote must be sent its
names then, or the measure would see nothing.
"""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dnslib import EDNS0, DNSRecord, EDNSOption

from bench.names_pushed_days import several
from bench.names_pushed_ground import OPTION
from bench.names_pushed_intruder import attempts, claims, from_remote, opens
from bench.names_pushed_remotes import renew, restart, until_pushed, until_stream
from bench.names_pushed_resolver import HostileResolver, addresses_of
from harness.boxes.pair import Pair
from harness.lab import names_night
from harness.lab.init_pair import pair_of_init
from harness.lab.line import Line
from harness.lab.links import link
from harness.net.namespaces import Namespace
from harness.net.sockets import socket_in
from harness.net.topology import CLIENT, RESOLVER
from harness.results.figures import at_most

TARGETS = [at_most("poisoned_names", 0), at_most("push_streams_of_clients", 0)]
LINK = "leo"
HOSTILE = "192.0.2.3"
PAGE = "www.page.example.org"
FOLLOWING = [f"{word}.page.example.org" for word in ("img", "font", "ads", "cdn")]
"""The names of the page. One of them is an alias."""
POPULAR = "popular.example.org"
"""A name that does not follow the page. It comes with the popular ones, so that those have been sent."""
BANK = "bank.example.com"
"""A name that nobody looks up, and that the resolver adds to other responses."""
OWN = [f"evil{number}.example.net" for number in range(8)]
TRUTH = {
    **{name: f"203.0.113.{10 + number}" for number, name in enumerate([PAGE, *FOLLOWING, POPULAR, BANK, *OWN])},
    "ads.page.example.org": BANK,
}
HONEST_REMOTES = 3
ATTACKS, QUICK_ATTACKS = 4, 2
"""Rounds of the hostile client before a restart of its remote, and after it."""
APART_S = 11.0
"""Lookups of one client within ten seconds belong together. The next round is another visit."""
OPTION_BYTES = 13
KINDS = ("A", "AAAA", "HTTPS")
TIMEOUT_S = 5.0


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Attacks, teaches, and looks at what a new remote gets."""
    rounds = QUICK_ATTACKS if quick else ATTACKS
    with (
        Line(folder, LINK, seed=1) as line,
        several(line),
        HostileResolver(line.internet, TRUTH, [PAGE, *FOLLOWING, POPULAR, BANK]) as resolver,
        pair_of_init(folder, line, link(LINK).setting) as both,
    ):
        until_stream(both)
        attack(line, rounds)
        both.remote.child.stop()
        restart(both)
        attack(line, rounds)
        tried = attempts(folder, line.clients, HOSTILE, claims(PAGE, OWN))
        for _ in range(HONEST_REMOTES):
            renew(both)
            honest_visit(line)
        sent = sent_to_victim(line, both)
        check_taught(sent)
        got = sent | {name: ask(line.clients, name, CLIENT) for name in TRUTH if name not in OWN}
        poisoned = poisoned_names(sent, got)
        added = resolver.added
        control = sent_after_second_attack(line, both)
        if not opens(from_remote(folder, line.near, both.remote.state)):
            raise RuntimeError("the remote itself cannot open the stream as the hostile client tries to")
    open_ways = [way for way, answer in tried.items() if opens(answer)]
    print(f"sent to the new remote: {sorted(sent)}", flush=True)
    print(f"poisoned: {sorted(poisoned)}; streams opened by {open_ways}", flush=True)
    if not added:
        raise RuntimeError("the resolver added no record")
    return {"poisoned_names": len(poisoned), "push_streams_of_clients": len(open_ways)}, {
        "sent to the new remote": sorted(sent),
        "responses with false addresses": added,
        "responses to attempts at the stream": {way: one.status or one.problem for way, one in tried.items()},
        "names of the hostile client that were sent after it had a second remote": control,
    }


def attack(line: Line, rounds: int) -> None:
    """Lets the hostile client look up the page and its own names, as itself and with forged options."""
    forged = random.Random(1)
    for number in range(rounds):
        if number:
            time.sleep(APART_S)
        for name in (PAGE, *OWN):
            for kind in KINDS:
                ask(line.clients, name, HOSTILE, kind, option=forged.randbytes(OPTION_BYTES))
                ask(line.clients, name, HOSTILE, kind, option=forged.randbytes(forged.randrange(40)))
                ask(line.clients, name, HOSTILE, kind)


def honest_visit(line: Line) -> None:
    """Lets an honest client visit the page, after a lookup of another name."""
    for name in (POPULAR, PAGE, *FOLLOWING):
        ask(line.clients, name, CLIENT)


def sent_to_victim(line: Line, both: Pair) -> dict[str, list[str]]:
    """Lets a client of a new remote look up the page alone. Returns the addresses of the other names in its memory."""
    renew(both)
    ask(line.clients, PAGE, CLIENT)
    until_pushed(both, len(FOLLOWING) + 1)
    both.remote.child.stop()
    kept = memory_of(both.remote.state)
    restart(both)
    kept.pop(PAGE, None)
    return kept


def sent_after_second_attack(line: Line, both: Pair) -> list[str]:
    """Lets the hostile client attack from another remote, where it counts as a second client. Returns its names that a
    new remote is sent then. Raises if there are none, because then the measure cannot see them."""
    renew(both)
    attack(line, 1)
    sent = sorted(set(sent_to_victim(line, both)) & set(OWN))
    if not sent:
        raise RuntimeError("the measure does not see names that two clients taught")
    return sent


def check_taught(sent: Mapping[str, Any]) -> None:
    """Raises if a name that honest clients taught was not sent."""
    if missing := {*FOLLOWING, POPULAR} - set(sent):
        raise RuntimeError(f"the ground did not send {sorted(missing)}, which honest clients taught it")


def poisoned_names(sent: Mapping[str, list[str]], got: Mapping[str, list[str]]) -> set[str]:
    """Returns the names with another response than the resolver's own, and those that the hostile client pushed in."""
    false = {name for name, addresses in got.items() if addresses not in ([], true_addresses(name))}
    return false | (set(sent) & set(OWN))


def true_addresses(name: str) -> list[str]:
    """Returns the addresses of a name, behind its aliases."""
    while name in TRUTH:
        name = TRUTH[name]
    return [name]


def memory_of(state: Path) -> dict[str, list[str]]:
    """Returns the names in the memory of a stopped remote, with their addresses. Denials of other types have none."""
    found: dict[str, list[str]] = {}
    for _, wire in names_night.records_of((state / names_night.KEPT).read_bytes()):
        message = DNSRecord.parse(wire)
        name = str(message.q.qname).rstrip(".")
        found[name] = sorted({*found.get(name, []), *addresses_of(message)})
    return found


def ask(clients: Namespace, name: str, source: str, kind: str = "A", option: bytes | None = None) -> list[str]:
    """Sends a query, with an option in the place of the remote's own. Returns the addresses of the name."""
    query = DNSRecord.question(name, kind)
    if option is not None:
        query.add_ar(EDNS0(udp_len=1232, opts=[EDNSOption(OPTION, option)]))
    with socket_in(clients, socket.SOCK_DGRAM) as made:
        made.bind((source, 0))
        made.settimeout(TIMEOUT_S)
        made.sendto(bytes(query.pack()), (RESOLVER, 53))
        return addresses_of(DNSRecord.parse(made.recv(65535)))
