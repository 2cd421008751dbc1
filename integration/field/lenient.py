"""Responses that break a rule, and that browsers and Squid accept: does a client get the body?"""

from __future__ import annotations

import base64
import zlib

from harness.boxes import Boxes

from .bed import Reply, all_at_once, get, standing
from .figure import Figure, together, wrong

BODY = b"hello"
OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = b"content-length: 5\r\n"
CHUNKED = b"5\r\nhello\r\n0\r\n\r\n"

RESPONSES: dict[str, bytes] = {
    "ICY": b"ICY 200 OK\r\ncontent-type: audio/mpeg\r\n\r\n" + BODY,
    "SOURCETABLE": b"SOURCETABLE 200 OK\r\n" + LENGTH + b"\r\n" + BODY,
    "the same length twice": OK + LENGTH * 2 + b"\r\n" + BODY,
    "a list of one length": OK + b"content-length: 5, 5\r\n\r\n" + BODY,
    "a length and chunks": OK + LENGTH + b"transfer-encoding: chunked\r\n\r\n" + CHUNKED,
    "Transfer-Encoding: identity": OK + b"transfer-encoding: identity\r\n" + LENGTH + b"\r\n" + BODY,
    "a blank before the colon": OK + b"x-one : v\r\n" + LENGTH + b"\r\n" + BODY,
    "a line without a colon": OK + b"nothing here\r\n" + LENGTH + b"\r\n" + BODY,
    "an empty name": OK + b": v\r\n" + LENGTH + b"\r\n" + BODY,
    "a name with parentheses": OK + b"x-a(b): v\r\n" + LENGTH + b"\r\n" + BODY,
    "a name with a slash": OK + b"x/a: v\r\n" + LENGTH + b"\r\n" + BODY,
    "a blank line before the status": b"\r\n" + OK + LENGTH + b"\r\n" + BODY,
    "90 KB of fields": OK + b"".join(b"x-%d: %s\r\n" % (n, b"v" * 990) for n in range(90)) + LENGTH + b"\r\n" + BODY,
    "201 fields": OK + b"".join(b"x-%d: v\r\n" % n for n in range(200)) + LENGTH + b"\r\n" + BODY,
    "bare line feeds": b"HTTP/1.1 200 OK\ncontent-length: 5\n\nhello",
    "no length": OK + b"connection: close\r\n\r\n" + BODY,
}
"""By name. The plain ones among them have always worked."""

DOCUMENTED: dict[str, str] = {}
"""The names that Longhaul refuses, each with its reason. docs/src/troubleshooting.md lists them for operators."""


def lenient_responses_refused(quick: bool) -> Figure:  # noqa: ARG001 - it takes seconds
    """Responses of which a client gets another body, without the documented ones."""
    figures = []
    for kind in ("edge", "pair"):
        with standing(kind) as box:
            figures.append(
                wrong(all_at_once(lambda name, box=box: (f"{box.name}, {name}", _problem(box, name)), RESPONSES))
            )
    return together(figures)


def _problem(box: Boxes, name: str) -> str:
    path = "/raw/" + base64.urlsafe_b64encode(zlib.compress(RESPONSES[name])).decode()
    # Players announce themselves. Only such requests can pass unread.
    fields = ["Icy-MetaData: 1"] if name == "ICY" else ["User-Agent: NTRIP sample/1.0"] if name == "SOURCETABLE" else []
    reply = get(box, path, *fields)
    if BODY in reply.body and len(reply.body) < 2 * len(RESPONSES[name]) and not _is_error(reply):
        return ""
    return "" if name in DOCUMENTED else f"{reply.status} {reply.body[:60]!r} {reply.problem}"


def _is_error(reply: Reply) -> bool:
    return reply.status >= 400
