"""Files of the origin, whose URL describes them: `/file?kind=page&label=gzip&type=text/html&key=7`.

kind     page, text, sheet, script, json, noise, archive, article, base, form: see `plain`
label    Content-Encoding. The body is encoded so, whatever the client accepts
type     Content-Type. none: absent
cache    Cache-Control
pieces   1: the body comes in small pieces
digests  1: every digest field, true of the origin's own bytes
key      makes the URL and the body unique
field    a further field, `name: value`; may repeat
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import random
import re
from functools import cache
from urllib.parse import parse_qs, urlencode, urlsplit

import brotli
import zstandard

DIGESTS = ("content-md5", "digest", "content-digest", "repr-digest", "unencoded-digest")
MOVED = "img.example.org"
"""The host of objects in pages and style sheets, which an edge moves."""


def path_of(**spec: str | int | list[str]) -> str:
    """Returns the path of a file."""
    return "/file?" + urlencode(spec, doseq=True)


@cache
def plain(kind: str, key: str) -> bytes:
    """Returns a body without encoding."""
    drawn = random.Random(f"{kind} {key}")
    if kind in ("noise", "archive"):
        noise = drawn.randbytes(6000)
        return noise if kind == "noise" else noise + b"int value;\n" * 1500
    if kind == "sheet":
        return "".join(f".a{n} {{ background: url(http://{MOVED}/{key}-{n}.png) }}\n" for n in range(150)).encode()
    if kind == "page":
        rows = "".join(f'<p>{n} <img src="http://{MOVED}/{key}-{n}.png">\n' for n in range(150))
        return f"<!doctype html><title>{key}</title>{rows}".encode()
    if kind in ("base", "form"):
        # Pages that made an encoder with a base panic: half a token in the base, the whole in the page.
        drawn = random.Random(key)
        token = f"{drawn.getrandbits(128):032x}"
        rest = " ".join("".join(drawn.choices("abcdefghijklmnopqrstuvwxyz", k=drawn.randint(3, 9))) for _ in range(60))
        if kind == "base":
            return f'<!doctype html><p>{rest[:90]}<input name="csrf" value="{token[:17]} {rest[90:]}'.encode()[:262]
        last = f'<input type=hidden name="csrf" value="{token}">'
        return (f"<!doctype html><p>{rest[100:]}"[: 175 - len(last)] + last).encode()
    if kind == "article":
        common = "".join(f"<li><a href=/{n * 7919 % 10007}>{n * 104729 % 99991}</a>" for n in range(900))
        own = "".join(f"<p>{drawn.getrandbits(40)}" for _ in range(60))
        return f"<!doctype html><title>{key}</title><ul>{common}</ul>{own}".encode()
    if kind == "text":
        return "".join(f"<p>row {n} of {key}, {drawn.random()}\n" for n in range(300)).encode()
    if kind == "script":
        return "".join(f"var v{n} = '{key}' + {drawn.random()};\n" for n in range(300)).encode()
    return ("[" + ",".join(f'{{"n": {drawn.random()}}}' for _ in range(400)) + "]").encode()


def encoded(body: bytes, label: str) -> bytes:
    """Returns the body in a content encoding."""
    if label in ("gzip", "x-gzip"):
        return gzip.compress(body, 6, mtime=0)
    if label == "br":
        return brotli.compress(body, quality=5)
    if label == "zstd":
        return zstandard.compress(body, 6)
    return body


def digest_fields(plain_body: bytes, body: bytes) -> dict[str, str]:
    """Every digest field of a response to GET with status 200."""

    def sha(of: bytes) -> str:
        return base64.b64encode(hashlib.sha256(of).digest()).decode()

    return {
        "content-md5": base64.b64encode(hashlib.md5(body).digest()).decode(),
        "digest": f"sha-256={sha(body)}",
        "content-digest": f"sha-256=:{sha(body)}:",
        "repr-digest": f"sha-256=:{sha(body)}:",
        "unencoded-digest": f"sha-256=:{sha(plain_body)}:",
    }


def respond_with_file(target: str, asked: dict[str, str]) -> bytes:
    """Returns the response to a request."""
    spec = parse_qs(urlsplit(target).query)

    def one(name: str, otherwise: str = "") -> str:
        return spec.get(name, [otherwise])[0]

    label, whole_plain = one("label"), plain(one("kind", "json"), one("key"))
    whole = encoded(whole_plain, label)
    fields = {
        "etag": f'"{hashlib.sha256(whole).hexdigest()[:16]}"',
        "last-modified": "Sat, 01 Nov 2025 00:00:00 GMT",
        "accept-ranges": "bytes",
        "cache-control": one("cache", "no-store"),
    }
    if one("type", "text/plain") != "none":
        fields["content-type"] = one("type", "text/plain")
    if label:
        fields["content-encoding"] = label
    fields |= dict(line.split(": ", 1) for line in spec.get("field", []))
    status, body = "200 OK", whole
    found = re.fullmatch(r"bytes=(\d*)-(\d*)", asked.get("range", ""))
    if found and any(found.groups()):
        begin = int(found[1]) if found[1] else max(0, len(whole) - int(found[2]))
        end = min(int(found[2]), len(whole) - 1) if found[1] and found[2] else len(whole) - 1
        if begin < len(whole):
            status, body = "206 Partial Content", whole[begin : end + 1]
            fields["content-range"] = f"bytes {begin}-{end}/{len(whole)}"
    elif one("digests"):
        fields |= digest_fields(whole_plain, whole)
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status}\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body
