"""Ranges, labelled files and fields that describe a body, beside the same requests without Longhaul."""

from __future__ import annotations

import base64
import gzip
import hashlib
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import brotli
import zstandard

from harness.boxes import Boxes

from .bed import Reply, all_at_once, get, standing
from .figure import Figure, together, wrong
from .files import DIGESTS, path_of, plain

PUBLIC, PRIVATE = "public, max-age=600", "no-store"
ACCEPTS = ("", "identity", "gzip", "gzip, deflate, br")
TYPES = {
    "text": "text/html", "sheet": "text/css", "json": "application/json", "archive": "application/x-tar",
    "noise": "application/octet-stream",
}  # fmt: skip
ARCHIVES = ("application/x-tar", "application/gzip", "application/x-gzip", "application/octet-stream")
RANGES = ("bytes=1000-1999", "bytes=0-999", "bytes=-500")
_keys = itertools.count(1)


@dataclass(frozen=True)
class Case:
    """A request for a file, and the state of the cache."""

    kind: str
    media_type: str
    label: str
    accept: str
    is_warm: bool
    range: str = ""

    def __str__(self) -> str:
        cache = "cached" if self.is_warm else "not cached"
        return f"{self.kind} {self.media_type}, label {self.label!r}, accept {self.accept!r}, {cache}, {self.range}"

    def fetch(self, box: Boxes, digests: str = "") -> tuple[Reply, Reply, str]:
        """Returns the response of the box, the one without it, and the file's key."""
        key = f"{box.name}-{next(_keys)}"
        path = path_of(
            kind=self.kind, type=self.media_type, label=self.label, cache=PUBLIC if self.is_warm else PRIVATE, key=key,
            digests=digests,
        )  # fmt: skip
        if self.is_warm:
            # The cache admits at the second request.
            for _ in range(3):
                get(box, path, "Accept-Encoding: gzip")
        fields = [f"Accept-Encoding: {self.accept}"] if self.accept else []
        fields += [f"Range: {self.range}"] if self.range else []
        return get(box, path, *fields), get(box, path, *fields, direct=True), key


def range_cases() -> Iterator[Case]:
    """Types, encodings, acceptance and states of the cache."""
    combined = itertools.product(TYPES, ("", "gzip", "x-gzip", "br", "zstd"), ACCEPTS, (False, True))
    for (kind, label, accept, is_warm), one in zip(combined, itertools.cycle(RANGES)):
        yield Case(kind, TYPES[kind], label, accept, is_warm, one)


def decoded(reply: Reply) -> bytes | None:
    """Returns the body without its encoding, or None where it is not what the label says."""
    try:
        match reply.fields.get("content-encoding", "identity"):
            case "gzip" | "x-gzip":
                return gzip.decompress(reply.body)
            case "br":
                return brotli.decompress(reply.body)
            case "zstd":
                return zstandard.ZstdDecompressor().decompressobj().decompress(reply.body)
    except (OSError, EOFError, brotli.error, zstandard.ZstdError):
        return None
    return reply.body


def range_problem(case: Case, box: Boxes) -> str:
    """Says what is wrong with the response to a range request. A whole response to it is right, too."""
    found, direct, key = case.fetch(box)
    if found.status == 200 and not found.problem:
        return "" if decoded(found) == plain(case.kind, key) else "200 with another body"
    for name in ("content-range", "content-encoding"):
        if found.fields.get(name) != direct.fields.get(name):
            return f"{found.status} {name}: {found.fields.get(name)}, direct {direct.fields.get(name)}"
    if (found.status, found.body) != (direct.status, direct.body):
        return f"{found.status} {len(found.body)} bytes, direct {direct.status} {len(direct.body)}; {found.problem}"
    return found.problem


def file_problem(case: Case, box: Boxes) -> str:
    """Says how a labelled file differs from the origin's."""
    found, direct, _ = case.fetch(box)
    problems = [] if found.body == direct.body else [f"{len(found.body)} bytes, direct {len(direct.body)}"]
    for name in ("content-encoding", "content-length", "etag", "accept-ranges"):
        if found.fields.get(name) != direct.fields.get(name):
            problems.append(f"{name}: {found.fields.get(name)}, direct {direct.fields.get(name)}")
    return "; ".join(problems)


def stale_fields(case: Case, box: Boxes) -> str:
    """Names the fields of a response that do not describe its body: digests, a strong ETag, Accept-Ranges."""
    found, direct, _ = case.fetch(box, digests="1")
    if found.status != 200 or found.problem:
        return f"{found.status} {found.problem}"
    bare = decoded(found)
    if bare is None:
        return "a body that is not what its label says"
    stale = []
    for name in DIGESTS:
        value = found.fields.get(name)
        if value is not None and not is_true_of(name, value, bare if name == "unencoded-digest" else found.body):
            stale.append(name)
    if found.body != direct.body:
        if found.fields.get("etag") == direct.fields["etag"]:
            stale.append("etag")
        if found.fields.get("accept-ranges") == "bytes":
            stale.append("accept-ranges")
    return ", ".join(stale)


def is_true_of(name: str, value: str, body: bytes) -> bool:
    """Checks one digest."""
    if name == "content-md5":
        return base64.b64decode(value) == hashlib.md5(body).digest()
    found = re.search(r"sha-256=:?([A-Za-z0-9+/=]+)", value)
    return bool(found) and base64.b64decode(found[1].rstrip(":")) == hashlib.sha256(body).digest()


def _of_boxes(cases: list[Case], problem: Callable[[Case, Boxes], str]) -> Figure:
    figures = []
    for kind in ("edge", "pair"):
        with standing(kind) as box:
            found = all_at_once(lambda case, box=box: (f"{box.name}: {case}", problem(case, box)), cases)
            figures.append(wrong(found))
    return together(figures)


def ranges_wrong(quick: bool) -> Figure:
    """Range requests whose response is not the origin's, nor the whole file."""
    cases = list(range_cases())
    return _of_boxes(cases[::3] if quick else cases, range_problem)


def labelled_files_changed(quick: bool) -> Figure:  # noqa: ARG001 - it takes seconds
    """Archives labelled gzip whose bytes, length, validator or ranges differ from the origin's."""
    combined = itertools.product(ARCHIVES, ("gzip", "x-gzip"), ACCEPTS, (False, True))
    cases = [Case("archive", media_type, label, accept, is_warm) for media_type, label, accept, is_warm in combined]
    return _of_boxes(cases, file_problem)


def stale_digests(quick: bool) -> Figure:  # noqa: ARG001 - it takes seconds
    """Responses with a field that describes other bytes than theirs."""
    types = {
        "page": "text/html", "sheet": "text/css", "json": "application/json", "script": "text/javascript",
        "noise": "image/png",
    }  # fmt: skip
    combined = itertools.product(types, ("", "gzip"), ("", "gzip", "gzip, deflate, br"), (False, True))
    cases = [Case(kind, types[kind], label, accept, is_warm) for kind, label, accept, is_warm in combined]
    return _of_boxes(cases, stale_fields)
