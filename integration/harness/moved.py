"""The moved form of URLs, read back: what an address on the proxy stands for.

Written here a second time, from the design and not from the filter's code: a test must not believe what it tests.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import urlsplit


def true_url(url: str, own: Collection[str]) -> str:
    """The origin's URL for one on the proxy (whose authorities are `own`); any other URL as it is."""
    split = urlsplit(url)
    if split.netloc not in own:
        return url
    match = re.fullmatch(r"/([^/:]+)(?::(\d+))?(/.*)?", split.path)
    if match is None:
        return url
    host, port, path = match.groups()
    scheme = "https" if port == "443" else "http"
    authority = host if port in (None, "443") else f"{host}:{port}"
    # An empty query is one all the same.
    query = f"?{split.query}" if "?" in url.split("#")[0] else ""
    return f"{scheme}://{authority}{path or '/'}{query}"


def is_moved(url: str, own: Collection[str]) -> bool:
    """Whether the URL is an object on the proxy."""
    return true_url(url, own) != url


def put_back(body: bytes, own: Collection[str]) -> bytes:
    """A body with every moved http or https URL as the origin wrote it.

    Scheme-relative ones come out absolute, and an `&` that the origin wrote bare may come out as `&amp;`.
    """
    for authority in own:
        target = re.compile(rb"https?://" + re.escape(authority.encode()) + rb"/([a-zA-Z0-9.-]+)(:443)?(?=[/?#])")
        body = target.sub(lambda found: (b"https://" if found[2] else b"http://") + found[1], body)
    return body


def same_markup(left: bytes, right: bytes) -> bool:
    """Whether two pages are the same but for how they write an ampersand in a URL."""
    return left.replace(b"&amp;", b"&") == right.replace(b"&amp;", b"&")
