"""One client requests more names than its budget has. No other client loses a name, and it keeps the names it knows."""

from __future__ import annotations

import ssl
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.boxes.pair import BYTES_ALPN, PIPE_PORT, tls_of_remote
from harness.lab.line import FAR
from harness.net.authority import KeyFiles
from harness.net.sockets import connected, socket_in
from harness.net.topology import CLIENT_DEVICE

from ..beds import HOST, ORIGIN, Target, fresh
from ..cases import Case
from ..wire import request_bytes, send_bytes

BUDGET = 600
"""`limits.new_names_per_client`: names at once, and each minute."""
FLOODER_OF_SERVER_NAMES = "192.0.2.78"
"""One more address among the clients."""
CONNECTIONS = 32
UNKNOWN = 502
"""The status for a name that does not exist. It takes a place in the table like any other name."""


@contextmanager
def _second_client(target: Target, address: str) -> Iterator[None]:
    target.clients.ip("address", "add", f"{address}/32", "dev", CLIENT_DEVICE)
    try:
        yield
    finally:
        target.clients.ip("address", "del", f"{address}/32", "dev", CLIENT_DEVICE)


def _status(target: Target, host: str, path: str = "/", source: str = "") -> int:
    with socket_in(target.clients) as asks:
        asks.settimeout(20.0)
        asks.bind((source, 0))
        asks.connect((ORIGIN, 80))
        return send_bytes(asks, request_bytes("GET", path, host, [("Connection", "close")])).status


def _names(count: int) -> list[str]:
    word = fresh("flood")
    return [f"{word}-{number}.example.org" for number in range(count)]


def _all(ask: Callable[[str], int], names: Iterable[str]) -> Counter[int]:
    with ThreadPoolExecutor(CONNECTIONS) as workers:
        return Counter(workers.map(ask, names))


def _requests(count: int, flooder: str) -> Callable[[Target], str]:
    """Each case needs a `flooder` of its own, because the budget of the last one is spent."""

    def attack(target: Target) -> str:
        with _second_client(target, flooder):
            if (known := _status(target, HOST, "/say?b=known", flooder)) != 200:
                return f"the flooding client got {known} before its flood"
            flood = _all(lambda name: _status(target, name, source=flooder), _names(count))
            others = _all(lambda name: _status(target, name), _names(100))
            kept = _status(target, HOST, "/say?b=known", flooder)
        if set(flood) != {UNKNOWN, 429} or flood[UNKNOWN] < BUDGET:
            return f"the flooding client got {dict(flood)}"
        if set(others) != {UNKNOWN}:
            return f"another client got {dict(others)}"
        return "" if kept == 200 else f"the flooding client got {kept} for a name that it knows"

    return attack


def _hello(context: ssl.SSLContext, name: str) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def _server_names(target: Target) -> str:
    """The ground of a pair cannot tell clients apart here: the remote is the client whose budget counts."""
    context = ssl.create_default_context()

    def counted(reason: str) -> float:
        return target.metric(f'longhaul_name_budget_requests_total{{reason="{reason}"}}')

    def ask(name: str, source: str = "") -> int:
        with socket_in(target.clients) as asks:
            asks.settimeout(20.0)
            asks.bind((source, 0))
            asks.connect((ORIGIN, 443))
            with suppress(OSError):
                asks.sendall(_hello(context, name))
                return len(asks.recv(1))
        return 0

    before = counted("refused")
    with _second_client(target, FLOODER_OF_SERVER_NAMES):
        _all(lambda name: ask(name, FLOODER_OF_SERVER_NAMES), _names(BUDGET + 400))
    refused = counted("refused") - before
    if not 0 < refused <= 400:
        return f"{refused:.0f} of {BUDGET + 400} server names were refused"
    if target.name == "edge":
        _all(ask, _names(100))
        more = counted("refused") - before - refused
        return f"{more:.0f} server names of another client were refused" if more else ""
    if unnamed := counted("unnamed"):
        return f"{unnamed:.0f} server names counted against no budget"
    as_another_remote = _another_remote(target)
    _all(lambda name: as_another_remote(_hello(context, name)), _names(200))
    more = counted("refused") - before - refused
    return f"{more:.0f} server names of another remote were refused" if more else ""


def _another_remote(target: Target) -> Callable[[bytes], int]:
    """Returns a function that sends the first bytes of a client to the ground, from an address other than the remote's.
    It returns the length of the response, up to one byte."""
    assert target.both
    files = {kind: Path(path) for kind, path in target.both.identity.items()}
    context = tls_of_remote(KeyFiles(files["cert"], files["key"]), BYTES_ALPN, files["ca"])

    def ask(hello: bytes) -> int:
        with (
            connected(target.clients, FAR, PIPE_PORT) as plain,
            context.wrap_socket(plain, server_hostname=FAR) as asks,
            suppress(OSError),
        ):
            asks.sendall(hello)
            return len(asks.recv(1))
        return 0

    return ask


CASES = [
    Case("1,000 names in requests", _requests(1000, "192.0.2.77")),
    Case("5,000 names in requests", _requests(5000, "192.0.2.79"), is_long=True),
    Case("1,000 server names", _server_names),
]
