"""Clients that lie about the scheme. The listener knows it, and a lie must not affect the responses to others."""

from __future__ import annotations

from collections.abc import Callable

from harness.boxes.bed import PROXY_NAME

from ..beds import HOST, Target, fresh
from ..cases import Case
from ..wire import Reply, request_bytes

KEPT = "h=cache-control:%20public,max-age=600"


def _poison(lie: Callable[[Target, str], Reply], honest: Callable[[Target, str], Reply]) -> Callable[[Target], str]:
    """Lets the liar send three requests, so that a cache has every reason to store. Then an honest client sends one."""

    def attack(target: Target) -> str:
        word = fresh("scheme")
        path = f"/say?{KEPT}&b={word}"
        for _ in range(3):
            lie(target, path)
        reply = honest(target, path)
        if word.encode() in reply.body and reply.header("age") is not None:
            return f"an honest client was served what a lie about the scheme had stored (age {reply.header('age')})"
        return ""

    return attack


def _redirect_to_itself(target: Target) -> str:
    """The usual redirect from http to https. Stored for a client that said https, it would lead everybody into a
    loop."""
    word = fresh("scheme")
    path = f"/say?s=301&{KEPT}&h=location:%20https://{HOST}/{word}&b={word}"
    for _ in range(3):
        target.http2().get("https", HOST, path)
    for _ in range(2):
        honest = target.get_tls(f"/{HOST}:443{path}") if target.has_tls else None
    if honest and honest.status == 301 and honest.header("age") is not None:
        return "a redirect that was fetched over http is served to clients of https"
    return ""


def _absolute(target: Target, path: str) -> Reply:
    return target.send(request_bytes("GET", f"https://{HOST}{path}", HOST))


def _remote_asks_as_it_is(target: Target) -> str:
    """A client that says https on port 80 gets the http origin's response. An honest http client gets its own."""
    word = fresh("scheme")
    path = f"/say?{KEPT}&b={word}"
    lied = target.http2().get("https", HOST, path)
    honest = target.get(path)
    if honest.body != word.encode():
        return f"an honest client got {honest.status} {honest.body[:80]!r} after a lie (the liar: {lied.status})"
    return ""


CASES = [
    Case("HTTP/2 on port 80 says https", _poison(
        lambda target, path: target.http2().get("https", HOST, path),
        lambda target, path: target.get_tls(f"/{HOST}:443{path}"),
    ), ("edge",)),
    Case("absolute form on port 80 says https", _poison(
        _absolute, lambda target, path: target.get_tls(f"/{HOST}:443{path}"),
    ), ("edge",)),
    Case("HTTP/2 on the https name says http for an https origin", _poison(
        lambda target, path: target.http2_tls().get("http", PROXY_NAME, f"/{HOST}:443{path}"),
        lambda target, path: target.get(path),
    ), ("edge",)),
    Case("a redirect to https, stored as https", _redirect_to_itself, ("edge",)),
    Case("HTTP/2 to the remote says https, and the origin is asked over http all the same", _remote_asks_as_it_is),
]  # fmt: skip
