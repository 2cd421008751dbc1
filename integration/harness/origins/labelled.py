"""An origin on port 80 that describes its bodies in every field, serves ranges, and labels files as compressed.

    labelled_origin.py ADDRESS

The path is `/FORM/NAME.TYPE`. The form is `plain`, or `negotiated`: gzip for those who accept it. Any other form is a
content encoding, with which the server labels the file for everybody.
"""

from __future__ import annotations

import gzip
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import brotli

TYPES = {
    "html": "text/html", "css": "text/css", "js": "text/javascript", "png": "image/png", "gz": "text/plain",
    "tgz": "application/x-tar", "deb": "application/vnd.debian.binary-package", "whl": "application/zip",
}  # fmt: skip
ENCODED = ("content-md5", "digest", "content-digest", "repr-digest")
"""Digests of the encoded bytes."""
UNENCODED = "unencoded-digest"
TEXT = b"p { background: url(http://img.example.org/a.png) }<img src=http://img.example.org/b.png>\n" * 400


def takes_gzip(accepted: str) -> bool:
    """Returns true if a value of Accept-Encoding accepts gzip."""
    weights = {}
    for item in accepted.lower().split(","):
        name, _, parameter = item.strip().partition(";")
        weights[name.strip()] = not re.fullmatch(r"\s*q=0(\.0*)?", parameter)
    return weights.get("gzip", weights.get("*", False))


class Handler(BaseHTTPRequestHandler):
    """Serves one connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Serves a body or a part of it."""
        form, _, name = self.path.removeprefix("/").partition("/")
        coding = form if form not in {"plain", "negotiated"} else ""
        if form == "negotiated" and takes_gzip(self.headers.get("accept-encoding", "")):
            coding = "gzip"
        body = TEXT
        if coding in {"gzip", "x-gzip"}:
            body = gzip.compress(TEXT, mtime=0)
        elif coding == "br":
            body = brotli.compress(TEXT)
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range", ""))
        first, last = (int(found[1]), int(found[2] or len(body) - 1)) if found else (0, len(body) - 1)
        status, part, where = 200, body, ""
        if found and first < len(body):
            last = min(last, len(body) - 1)
            status, part, where = 206, body[first : last + 1], f"bytes {first}-{last}/{len(body)}"
        elif found:
            status, where = 416, f"bytes */{len(body)}"
        self.send_response(status)
        fields = {
            "content-type": TYPES.get(name.rpartition(".")[2], "application/octet-stream"),
            "content-length": str(len(part)), "cache-control": "max-age=600", "etag": f'"{coding or "plain"}"',
            "accept-ranges": "bytes", "content-encoding": coding, "content-range": where,
            "vary": "Accept-Encoding" if form == "negotiated" else "",
            **dict.fromkeys((*ENCODED, UNENCODED), "sha-256=:YQ==:"),
        }  # fmt: skip
        for field, value in fields.items():
            if value:
                self.send_header(field, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(part)

    do_HEAD = do_GET  # noqa: N815 - the name that the base class calls

    def log_message(self, format: str, *args: Any) -> None:
        """Writes no log."""


def command(address: str) -> list[str]:
    """Returns the command that runs this origin. With -P, no module beside this file replaces one of Python's."""
    return [sys.executable, "-P", __file__, address]


def main(address: str) -> None:
    """Serves until it is stopped."""
    server = ThreadingHTTPServer((address, 80), Handler)
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
