"""Requests that two parsers could split differently (RFC 9112, sections 2, 3, 6, 7 and 11.2).

The origin must read exactly the requests that Envoy sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ..beds import HOST, Target, fresh
from ..cases import Case

CHUNKED_NAMES = (
    "Transfer-Encoding: chunked", "Transfer-Encoding : chunked", " Transfer-Encoding: chunked", "Transfer-Encoding: xchunked",  # noqa: E501
    "Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity, chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",  # noqa: E501
    "Transfer-Encoding:\tchunked", "Transfer-Encoding: \x0bchunked", "Transfer-Encoding: chunked;a=b", "Transfer-Encoding: \"chunked\"",  # noqa: E501
    "Transfer-Encoding:\r\n chunked", "X: y\r\n Transfer-Encoding: chunked", "Transfer-Encoding: CHUNKED", "Transfer_Encoding: chunked",  # noqa: E501
    "Transfer-Encoding\0: chunked", "Transfer-Encoding: chunked\0", "Transfer-Encoding: chunked\rX: y",
)  # fmt: skip
LENGTHS = (
    "Content-Length: {n}\r\nContent-Length: 0", "Content-Length: 0\r\nContent-Length: {n}", "Content-Length: {n}, 0", "Content-Length: +{n}",  # noqa: E501
    "Content-Length: 0x{n:x}", "Content-Length: {n} ", "Content-Length: -1", "Content-Length: {n}\x0b", "Content-Length : {n}",  # noqa: E501
    "Content_Length: {n}", "Content-Length: 99999999999999999999", "Content-Length: {n}.0", "Content-Length:\r\n {n}",
)  # fmt: skip
TARGETS = (
    "/x HTTP/1.1\r\nHost: a\r\n\r\nGET /{word}", "/x\tHTTP/1.1", "/x\r\nX: y", "*", "//", "http:///x", "?", "/x#y", "/\0", "/\x7f", "/x y",  # noqa: E501
    "/%0d%0aHost:%20a", "HTTP/1.1",
)  # fmt: skip
WAIT_S = 0.5
"""A request that is only half sent gets no response."""
ENDINGS = ("\n", "\r", "\r\r\n", "\n\r\n")


def _unaccounted(target: Target) -> int:
    """Returns the number of requests that the origin has read and Envoy has not sent, once no request is under way."""
    last = None
    for _ in range(20):
        arrived = target.count_arrived()
        sent = target.asked_of_origins()
        if last == (arrived, sent) and arrived <= sent:
            break
        last = (arrived, sent)
        time.sleep(0.05)
    return arrived - sent


def _as_many_as_sent(target: Target, attack: Callable[[str], object]) -> str:
    """The origin must read as many requests as Envoy counts as sent. Another number means that they disagree."""
    before = _unaccounted(target)
    attack(fresh("smuggle"))
    more = _unaccounted(target) - before
    return f"the origin read {more} requests that Envoy does not know of" if more > 0 else ""


def _at_most_one(build: Callable[[str], bytes]) -> Callable[[Target], str]:
    """Takes `build`, which makes a request around a word, with another request hidden in it."""
    return lambda target: _as_many_as_sent(target, lambda word: target.send(build(word), timeout_s=WAIT_S))


def _hidden(word: str) -> str:
    return f"GET /smuggled-{word} HTTP/1.1\r\nHost: {HOST}\r\n\r\n"


def _two_framings(framing: str) -> Callable[[str], bytes]:
    def build(word: str) -> bytes:
        body = f"0\r\n\r\n{_hidden(word)}"
        head = f"POST /one-{word} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(body)}\r\n{framing}"
        return f"{head}\r\n\r\n{body}".encode("latin-1")

    return build


def _lengths(lengths: str) -> Callable[[str], bytes]:
    def build(word: str) -> bytes:
        body = _hidden(word)
        lines = lengths.replace("{n:x}", f"{len(body):x}").replace("{n}", str(len(body)))
        return f"POST /one-{word} HTTP/1.1\r\nHost: {HOST}\r\n{lines}\r\n\r\n{body}".encode("latin-1")

    return build


def _target(form: str) -> Callable[[str], bytes]:
    return lambda word: f"GET {form.replace('{word}', 'smuggled-' + word)} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode(
        "latin-1"
    )


def _ending(end: str) -> Callable[[str], bytes]:
    """A header whose value holds bytes that another parser may treat as the end of the line."""
    return lambda word: (
        f"GET /one-{word} HTTP/1.1\r\nHost: {HOST}\r\nX: y{end}{end}"
        f"GET /smuggled-{word} HTTP/1.1{end}Host: {HOST}\r\n\r\n"
    ).encode("latin-1")


def _chunk(size: str) -> Callable[[str], bytes]:
    return lambda word: (
        f"POST /one-{word} HTTP/1.1\r\nHost: {HOST}\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\nab\r\n0\r\n\r\n"
    ).encode("latin-1")


def _is_refused(build: Callable[[str], bytes]) -> Callable[[Target], str]:
    """Malformed chunks: the origin never treats the request as complete."""

    def attack(target: Target) -> str:
        reply = target.send(build(fresh("chunk")), timeout_s=WAIT_S)
        return "" if reply.status not in range(200, 300) else f"status {reply.status} for a malformed chunk"

    return attack


def _over_http2(name: str, value: str) -> Callable[[Target], str]:
    """A header of HTTP/2 that would change its meaning as text on the way to the origin (RFC 9113, section 8.2.1)."""

    def attack(target: Target) -> str:
        def send(word: str) -> None:
            target.http2().get("http", HOST, f"/say?w={word}", [(name, value.replace("WORD", word))])

        return _as_many_as_sent(target, send)

    return attack


HTTP2 = {
    "line feed in a value": ("x", "y\r\n\r\nGET /smuggled-WORD HTTP/1.1\r\nHost: a\r\n\r\n"),
    "line feed in a name": ("x\r\n\r\nGET /smuggled-WORD HTTP/1.1\r\nHost", "a"),
    "transfer-encoding": ("transfer-encoding", "chunked"),
    "connection": ("connection", "x-longhaul-headers"),
    "length of more": ("content-length", "100"),
    "colon in a name": ("x: y\r\nz", "1"),
}

CASES = [
    *(
        Case(f"both framings, {line!r}", _at_most_one(_two_framings(line)), is_long=index % 6 != 0)
        for index, line in enumerate(CHUNKED_NAMES)
    ),
    *(
        Case(f"lengths, {line!r}", _at_most_one(_lengths(line)), is_long=index % 4 != 0)
        for index, line in enumerate(LENGTHS)
    ),
    *(
        Case(f"target, {form!r}", _at_most_one(_target(form)), is_long=index % 4 != 0)
        for index, form in enumerate(TARGETS)
    ),
    *(Case(f"line ended by {end!r}", _at_most_one(_ending(end))) for end in ENDINGS),
    *(
        Case(f"chunk of size {size!r}", _is_refused(_chunk(size)), is_long=index != 0)
        for index, size in enumerate(("0x2", "2\0", "-2", "+2", "g", "", "2 2", "100000000000000002", "2\n"))
    ),
    *(Case(f"HTTP/2: {name}", _over_http2(*field)) for name, field in HTTP2.items()),
]
