"""Reads moved URLs back: finds the origin's URL for an address on the proxy.

This is a second implementation, from the design and not from the filter's code. A test must not trust the code that it
tests.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import urlsplit


def true_url(url: str, own: Collection[str]) -> str:
    """Returns the origin's URL for a URL on the proxy, whose authorities are `own`. Returns any other URL unchanged."""
    split = urlsplit(url)
    if split.netloc not in own:
        return url
    match = re.fullmatch(r"/([^/:]+)(?::(\d+))?(/.*)?", split.path)
    if match is None:
        return url
    host, port, path = match.groups()
    scheme = "https" if port == "443" else "http"
    authority = host if port in (None, "443") else f"{host}:{port}"
    # An empty query is a query, too.
    query = f"?{split.query}" if "?" in url.split("#")[0] else ""
    return f"{scheme}://{authority}{path or '/'}{query}"


def is_moved(url: str, own: Collection[str]) -> bool:
    """Returns true if the URL names an object on the proxy."""
    return true_url(url, own) != url


def put_back(body: bytes, own: Collection[str]) -> bytes:
    """Restores every moved http or https URL of a body to the origin's form.

    Scheme-relative URLs become absolute, and a bare `&` of the origin may become `&amp;`.
    """
    for authority in own:
        target = re.compile(rb"https?://" + re.escape(authority.encode()) + rb"/([a-zA-Z0-9.-]+)(:443)?(?=[/?#])")
        body = target.sub(lambda found: b"%s://%s" % (b"https" if found[2] else b"http", found[1]), body)
    return body


def same_markup(left: bytes, right: bytes) -> bool:
    """Returns true if two pages differ at most in the form of ampersands in URLs."""
    return left.replace(b"&amp;", b"&") == right.replace(b"&amp;", b"&")
