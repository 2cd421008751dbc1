"""Bodies that compress extremely well. They are valid, so each arrives whole. A body that breaks off looks broken."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from itertools import product

import brotli
import zstandard

from ..beds import Target, fresh
from ..cases import Case
from ..origin import made
from ..wire import Reply

TYPES = ("text/html", "text/css", "text/plain", "application/json", "image/svg+xml", "application/octet-stream")
ACCEPTED = {"gzip": "gzip", "br": "gzip, br", "zstd": "gzip, br, zstd", "none": "gzip"}


def plain(reply: Reply) -> bytes:
    """Returns the body without its content encoding. A body that cannot be decompressed is an error."""
    coding = reply.header("content-encoding")
    if coding == "gzip":
        return gzip.decompress(reply.body)
    if coding == "br":
        return brotli.decompress(reply.body)
    if coding == "zstd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(reply.body)
    return reply.body


def body_arrives(target: Target, coding: str, size: int, content_type: str, accept: str) -> str:
    """Checks that a client that accepts these encodings gets exactly the origin's bytes."""
    accepts = [("Accept-Encoding", accept)] if accept else []
    reply = target.get(f"/made/{coding}/{size}/{content_type.replace('/', '%2F')}?w={fresh('made')}", *accepts)
    if reply.status != 200 or not reply.is_whole:
        return f"status {reply.status}, whole: {reply.is_whole}, {len(reply.body)} bytes"
    try:
        body = plain(reply)
    except (OSError, EOFError, brotli.error, zstandard.ZstdError) as error:
        return f"what arrived cannot be decompressed: {error}"
    return "" if body == made("none", size) else f"{len(body)} of {size} bytes arrived, and look whole"


def _whole(coding: str, size: int, content_type: str, accept: str) -> Callable[[Target], str]:
    return lambda target: body_arrives(target, coding, size, content_type, accept)


def _cut(coding: str, content_type: str) -> Callable[[Target], str]:
    def attack(target: Target) -> str:
        """The origin promises a length and closes after half of it."""
        path = f"/made/{coding}/400000/{content_type.replace('/', '%2F')}?cut=1&w={fresh('cut')}"
        reply = target.get(path, ("Accept-Encoding", ACCEPTED[coding]))
        if reply.status != 200 or not reply.is_whole:
            return ""
        try:
            whole = len(plain(reply)) == 400_000
        except (OSError, EOFError, brotli.error, zstandard.ZstdError):
            return ""
        return "" if whole else "half of a body arrived, and looks whole"

    return attack


def _cases() -> list[Case]:
    sizes = {"1 MB": 1_000_000, "8 MB": 8_000_000}
    cases = []
    for coding, (label, size), content_type in product(ACCEPTED, sizes.items(), TYPES):
        for accept in (ACCEPTED[coding], "", "gzip"):
            name = f"{content_type} of {label} in {coding} to a client that accepts {accept or 'nothing'}"
            is_short = (
                size == 1_000_000 and content_type in TYPES[:2] and accept == ACCEPTED[coding] and coding != "none"
            )
            # The origin may send zstd to a client that does not accept it. Longhaul does not decompress it, so this is
            # the origin's mistake.
            if coding == "zstd" and accept != ACCEPTED[coding]:
                continue
            cases.append(Case(name, _whole(coding, size, content_type, accept), is_long=not is_short))
    cases += [
        Case(
            f"{content_type} in {coding} that breaks off",
            _cut(coding, content_type),
            is_long=content_type != "text/html",
        )
        for coding, content_type in product(("gzip", "br", "none"), TYPES[:3])
    ]
    return cases


CASES = _cases()
