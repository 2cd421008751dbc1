"""Responses that violate HTTP, or that no request called for. Such a response can end a shared connection. Browsers
show the pages of some of them (`LENIENT`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.clients.commands import Answer
from harness.host.artifacts import REPOSITORY

from .odd import path_of

_OK = b"HTTP/1.1 200 OK\r\n"
_EMPTY = b"content-length: 0\r\n\r\n"


@dataclass(frozen=True)
class Odd:
    """One response."""

    name: str
    response: bytes


def _statuses() -> Iterator[Odd]:
    for status in (
        "101",
        "099",
        "000",
        "1000",
        "65535",
        "0",
        "00200",
        "-200",
        "2x0",
        "199",
        "600",
        "999",
        "100",
        "102",
    ):
        yield Odd(f"status {status}", f"HTTP/1.1 {status} Odd\r\n".encode() + _EMPTY)
    for status in (204, 205, 304):
        yield Odd(f"{status} with a body", f"HTTP/1.1 {status} Odd\r\ncontent-length: 5\r\n\r\nhello".encode())
    yield Odd(
        "101 with an upgrade", b"HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n\x81\x05hello"
    )
    yield Odd("103 a hundred times", b"HTTP/1.1 103 Early\r\nlink: </a>\r\n\r\n" * 100 + _OK + _EMPTY)
    yield Odd("100 and 101", b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 101 S\r\n\r\n")


def _versions() -> Iterator[Odd]:
    for line in (
        b"HTTP/3.0 200 OK",
        b"HTTP/0.9 200 OK",
        b"HTTP/1.1 200",
        b"HTTP/1.1",
        b"ICY 200 OK",
        b"\x00\x00\x00\x04\x00",
    ):
        yield Odd(repr(line), line + b"\r\n" + _EMPTY)


def _fields() -> Iterator[Odd]:
    for field in (
        b": empty name", b"a b: space", b"nul: a\x00b", b"cr: a\rb", b"high: \xff\xfe\x80", b"tab\t: a", b"no colon",
        b":status: 200", b":path: /", b"transfer-encoding: identity, chunked, x", b"content-length: 1, 2",
        b"content-length: -1", b"content-length: 99999999999999999999", b"connection: close, x-longhaul-headers",
        b"upgrade: h2c", b"x-longhaul-headers: -", b"x-longhaul-headers: ,!", b"x-longhaul-retry: 1", b"te: trailers",
        b"proxy-connection: keep-alive", b"http2-settings: AAMAAABkAAQAAP__", b"trailer: content-length", b"date: -",
    ):  # fmt: skip
        yield Odd(f"field {field!r}", _OK + field + b"\r\n" + _EMPTY)
    for count in (150, 199, 205, 231, 240, 1000):
        yield Odd(f"{count} fields", _OK + b"".join(b"f%d: v\r\n" % number for number in range(count)) + _EMPTY)
    for size in (15, 59, 63, 64, 65, 79, 81, 200):
        yield Odd(f"a field of {size} KiB", _OK + b"large: " + b"x" * (size * 1024) + b"\r\n" + _EMPTY)
    yield Odd("a name of 70000 bytes", _OK + b"n" * 70000 + b": v\r\n" + _EMPTY)
    yield Odd("a thousand cookies", _OK + b"set-cookie: a=b; path=/\r\n" * 1000 + _EMPTY)


def _framings() -> Iterator[Odd]:
    chunked = _OK + b"transfer-encoding: chunked\r\n\r\n"
    for name, body in (
        ("endless size", b"f" * 40), ("no number", b"zz\r\nhello\r\n"), ("broken off", b"ff\r\nhello"),
        ("negative", b"-5\r\nhello\r\n0\r\n\r\n"), ("extension", b"5;" + b"x" * 20000 + b"\r\nhello\r\n0\r\n\r\n"),
        ("trailers", b"5\r\nhello\r\n0\r\nx-longhaul-headers: -\r\n:status: 500\r\n\r\n"),
        ("trailers of 100 KiB", b"5\r\nhello\r\n0\r\nt: " + b"x" * 102400 + b"\r\n\r\n"),
        ("1000 trailers", b"5\r\nhello\r\n0\r\n" + b"t: x\r\n" * 1000 + b"\r\n"),
        ("bad trailer", b"5\r\nhello\r\n0\r\nbad trailer\r\n\r\n"),
    ):  # fmt: skip
        yield Odd(f"chunks: {name}", chunked + body)
    yield Odd("both framings", _OK + b"transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    yield Odd("two lengths", _OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!")
    yield Odd("more than promised", _OK + b"content-length: 2\r\n\r\nhelloHTTP/1.1 101 S\r\n\r\n")
    yield Odd("less than promised", _OK + b"content-length: 200\r\n\r\nhello")
    yield Odd("nothing", b"")
    yield Odd("half a head", b"HTTP/1.1 200 OK\r\nserver: ngi")


def all_odd() -> list[Odd]:
    """Returns all responses that a request line can hold."""
    return [*_statuses(), *_versions(), *_fields(), *_framings()]


_PAGE = _OK + b"content-type: text/plain\r\n"
_FIVE = b"content-length: 5\r\n"
_CHUNKED = b"transfer-encoding: chunked\r\n"
_HELLO = b"5\r\nhello\r\n0\r\n\r\n"

LENIENT = [
    Odd("`Content-Length` twice, with one value", _PAGE + _FIVE * 2 + b"\r\nhello"),
    Odd("`Content-Length: 5, 5`", _PAGE + b"content-length: 5, 5\r\n\r\nhello"),
    Odd("`Content-Length` that is empty or no number", _PAGE + b"content-length: 5 bytes\r\n\r\nhello"),
    Odd("`Content-Length` and `Transfer-Encoding: chunked`", _PAGE + _FIVE + _CHUNKED + b"\r\n" + _HELLO),
    Odd("`Transfer-Encoding: identity`", _PAGE + _FIVE + b"transfer-encoding: identity\r\n\r\nhello"),
    Odd("`Transfer-Encoding: chunked` twice", _PAGE + _CHUNKED * 2 + b"\r\n" + _HELLO),
    Odd("a blank before the colon of a field", _PAGE + _FIVE + b"x-a : b\r\n\r\nhello"),
    Odd("a line without a colon", _PAGE + _FIVE + b"no colon here\r\n\r\nhello"),
    Odd("a field with an empty name", _PAGE + _FIVE + b": b\r\n\r\nhello"),
    Odd(
        "a field name with other characters than those of a token", _PAGE + _FIVE + b"x-a(b): c\r\nx/a: b\r\n\r\nhello"
    ),
    Odd("a control character in a value", _PAGE + _FIVE + b"x-a: b\x01c\r\n\r\nhello"),
    Odd("a blank line before the status line", b"\r\n" + _PAGE + _FIVE + b"\r\nhello"),
    Odd("`ICY 200 OK`", b"ICY 200 OK\r\ncontent-type: audio/mpeg\r\n\r\nhello"),
    Odd("`SOURCETABLE 200 OK`", b"SOURCETABLE 200 OK\r\n" + _FIVE + b"\r\nhello"),
    Odd("`HTTP/2 200`, or `http/1.1 200 OK`", b"HTTP/2 200\r\n" + _FIVE + b"\r\nhello"),
    Odd("no status line (HTTP/0.9)", b"hello"),
    Odd("a field over two lines", _PAGE + _FIVE + b"x-a: b\r\n c\r\n\r\nhello"),
    Odd("lines that end in LF", (_PAGE + _FIVE + b"\r\nhello").replace(b"\r", b"")),
    Odd("a status line without a reason", _PAGE.replace(b" OK", b"") + _FIVE + b"\r\nhello"),
    Odd("bytes beyond ASCII in a value", _PAGE + _FIVE + b"x-a: \xe4\xff\r\n\r\nhello"),
    Odd("102 twice", b"HTTP/1.1 102 Processing\r\n\r\n" * 2 + _PAGE + _FIVE + b"\r\nhello"),
    Odd("201 fields", _PAGE + _FIVE + b"".join(b"x-%d: b\r\n" % field for field in range(201)) + b"\r\nhello"),
    Odd("90 KB of fields", _PAGE + _FIVE + b"x-a: %s\r\n" % (b"b" * 1000) * 90 + b"\r\nhello"),
    Odd("a body without its announced end", _PAGE + b"\r\nhello"),
]
"""Responses whose body, `hello`, browsers and curl accept. A proxy may refuse those that the guide lists."""

GUIDE = REPOSITORY / "docs" / "src" / "troubleshooting.md"
_REFUSED = re.compile(r"^\| Response: (.+?) \|", re.MULTILINE)


def documented_refusals() -> list[str]:
    """Returns the names of lenient responses that the operator's guide says are refused, in the order of `LENIENT`."""
    listed = set(_REFUSED.findall(GUIDE.read_text()))
    names = [odd.name for odd in LENIENT]
    assert listed <= set(names), f"the guide lists responses that no test sends: {listed - set(names)}"
    return [name for name in names if name in listed]


def refused(ask: Callable[[str], Answer]) -> list[str]:
    """Returns the names of the lenient responses that do not arrive as the origin sent them. `ask` requests a path of
    the odd origin."""
    answers = ((odd.name, ask(path_of(odd.response))) for odd in LENIENT)
    return [name for name, answer in answers if (answer.status, answer.body) != (200, b"hello")]
