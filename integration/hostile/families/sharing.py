"""Two clients, one URL. Nothing of one client may reach the other unless the origin said that anybody may have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import quote

from ..beds import Target, fresh
from ..cases import Case

Header = tuple[str, str]

FRESH_FOR_ALL = {
    "max-age": "cache-control: max-age=600",
    "public": "cache-control: public, max-age=600",
    "s-maxage": "cache-control: s-maxage=600",
    "Expires": "expires: Thu, 01 Jan 2099 00:00:00 GMT",
    "Last-Modified": "last-modified: Mon, 01 Jan 2001 00:00:00 GMT",
    "nothing said": "x-nothing: said",
}
NEVER_SHARED = {
    "private": "cache-control: private, max-age=600",
    "no-store": "cache-control: no-store",
    "no-cache": "cache-control: no-cache",
    "Vary: *": "vary: *",
}
ASKED = 4
"""Requests of the first client. Everything cacheable is cached by the third."""


def _url(lines: Sequence[str], body: str) -> str:
    return f"/say?{'&'.join(f'h={quote(line)}' for line in lines)}&b={body}&w={fresh('share')}"


def _private(
    lines: Sequence[str], first: Sequence[Header], second: Sequence[Header], body: str, secret: str
) -> Callable[[Target], str]:
    """Sends several requests of the first client, with the headers that select the response. The second client must not
    see the secret."""

    def attack(target: Target) -> str:
        url = _url(lines, body)
        for _ in range(ASKED):
            own = target.get(url, *first)
            if own.status != 200:
                return f"the first client got {own.status}"
        for _ in range(2):
            other = target.get(url, *second)
            if other.status != 200:
                return f"the second client got {other.status}"
            if secret.encode() in other.body or any(secret in value for _, value in other.headers):
                return f"the second client got what was the first one's: {other.body[:60]!r}"
        return ""

    return attack


def _own_view(lines: Sequence[str], headers: Sequence[Header], body: str, expected: str) -> Callable[[Target], str]:
    """Sends anonymous requests until the response is cached. A client with its own headers must get its own
    response."""

    def attack(target: Target) -> str:
        url = _url(lines, body)
        for _ in range(ASKED):
            target.get(url)
        reply = target.get(url, *headers)
        return "" if expected.encode() in reply.body else f"got {reply.body[:60]!r} instead of its own"

    return attack


def _set_cookie(line: str) -> Callable[[Target], str]:
    """Each response sets its own cookie, and no client may get another's."""

    def attack(target: Target) -> str:
        url = _url([line, f"set-cookie: session={fresh('secret')}"], "{n}")
        bodies = []
        for _ in range(ASKED + 1):
            reply = target.get(url)
            bodies.append(reply.body)
            if reply.status != 200 or not reply.header("set-cookie"):
                return f"status {reply.status}, Set-Cookie {reply.header('set-cookie')}"
        return "" if len(set(bodies)) == len(bodies) else "a response with Set-Cookie was shared"

    return attack


def _is_shared(lines: Sequence[str], headers: Sequence[Header] = ()) -> Callable[[Target], str]:
    """The opposite case: a response for everybody is cached, so a later request does not reach the origin."""

    def attack(target: Target) -> str:
        url = _url(lines, "{n}")
        bodies = [target.get(url, *headers).body for _ in range(ASKED)]
        return "" if bodies[-1] == bodies[-2] else "the fourth request of a cacheable URL still reached the origin"

    return attack


def _withdrawn_by(method: str) -> Callable[[Target], str]:
    """RFC 9111, section 4.4: a successful unsafe request invalidates what is stored."""

    def attack(target: Target) -> str:
        url = _url(["cache-control: max-age=600"], "{n}")
        bodies = [target.get(url).body for _ in range(ASKED)]
        target.get(url, method=method, body=b"x")
        after = target.get(url).body
        return "" if after != bodies[-1] else f"a response from before a {method} was served after it"

    return attack


def _age_is_kept(target: Target) -> str:
    """An origin that is a cache itself says how old its response is."""
    url = _url(["cache-control: max-age=600", "age: 500"], "{n}")
    for _ in range(ASKED):
        reply = target.get(url)
        if int(reply.header("age") or 0) < 500:
            return f"the response is 500 s old, and Age says {reply.header('age')}"
    return ""


def _unasked_part(target: Target) -> str:
    """A 206 without a Range in the request is not the whole object, and must not be served as one from a cache."""
    url = _url(["cache-control: max-age=600", "content-range: bytes 0-1/9"], "{n}") + "&s=206"
    bodies = [target.get(url).body for _ in range(ASKED)]
    return "" if len(set(bodies)) == len(bodies) else "a 206 that nobody asked for was cached"


def _only_if_cached(target: Target) -> str:
    word = fresh("only")
    reply = target.get(f"/say?b={word}", ("Cache-Control", "only-if-cached"))
    if target.arrived(word):
        return f"only-if-cached reached the origin ({reply.status})"
    return "" if reply.status == 504 else f"only-if-cached got {reply.status}, not 504"


ALICE = [("Cookie", "session=alice-secret")]
UNKEYED = (
    "X-Forwarded-Host",
    "X-Original-URL",
    "X-Rewrite-URL",
    "X-Forwarded-Scheme",
    "X-HTTP-Method-Override",
    "Forwarded",
)

CASES = [
    *(Case(f"Set-Cookie with {name}", _set_cookie(line)) for name, line in FRESH_FOR_ALL.items()),
    *(
        Case(f"response to a Cookie with {name}", _private([line], ALICE, [], "{cookie}", "alice-secret"))
        for name, line in FRESH_FOR_ALL.items() if name not in ("public", "s-maxage")
    ),
    *(
        Case(f"response to Authorization with {name}", _private(
            [line], [("Authorization", "Basic YWxpY2U6c2VjcmV0")], [], "{authorization}", "YWxpY2U6c2VjcmV0",
        )) for name, line in FRESH_FOR_ALL.items() if name not in ("public", "s-maxage")
    ),
    *(Case(f"own response to a Cookie after anonymous ones with {name}", _own_view([line], ALICE, "{cookie}", "alice-secret"))  # noqa: E501
      for name, line in FRESH_FOR_ALL.items() if name not in ("public", "s-maxage")),
    *(Case(f"{name} is not shared", _private([line], [("X-Api-Key", "alice-secret")], [], "{x-api-key}", "alice-secret"))  # noqa: E501
      for name, line in NEVER_SHARED.items()),
    Case("Vary: Accept", _private(
        ["cache-control: max-age=600", "vary: accept"], [("Accept", "image/alice-secret")], [("Accept", "text/html")],
        "{accept}", "alice-secret",
    )),
    *(Case(f"{name} does not poison", _private(
        ["cache-control: public, max-age=600"], [(name, "alice-secret.test")], [], "{x-forwarded-host}", "alice-secret",
    ), is_long=name != "X-Forwarded-Host") for name in UNKEYED),
    *(Case(f"{name} is cached", _is_shared([FRESH_FOR_ALL[name]])) for name in ("max-age", "public", "s-maxage", "Expires")),  # noqa: E501
    Case("public is cached for clients with a Cookie", _is_shared([FRESH_FOR_ALL["public"]], ALICE)),
    *(Case(f"{method} withdraws what is stored", _withdrawn_by(method)) for method in ("POST", "PUT", "DELETE")),
    Case("Age of the origin", _age_is_kept),
    Case("a 206 that nobody asked for", _unasked_part),
    Case("only-if-cached", _only_if_cached, ("edge",)),
]  # fmt: skip
