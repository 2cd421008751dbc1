"""Header traces: stories of hpack-test-case, HTTP archives and QPACK interop files."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

REPOSITORY = Path(__file__).resolve().parents[3]
# RFC 9113, 8.2.2: these do not exist on an HTTP/2 pipe, with us or without.
HOP_BY_HOP = {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
# The dictionary was trained on the stories with odd numbers. Of the even ones 04 and 26 have twins there (03, 31) and
# 17 is part of 20: those three were left out of the training.
TEST_STORIES = range(0, 31, 2)

Fields = list[tuple[bytes, bytes]]


@dataclass
class Trace:
    """Blocks of one connection in order: all requests, or all responses."""

    name: str
    requests: bool
    blocks: list[Fields]


def stories() -> list[Trace]:
    """The stories that no dictionary was trained on."""
    named = os.environ.get("LONGHAUL_CORPORA")
    corpora = Path(named) if named else REPOSITORY.parent / "shared" / "corpora"
    folder = corpora / "headers/hpack-raw-data/raw-data"
    if not folder.is_dir():
        raise FileNotFoundError(f"no stories in {folder}: set LONGHAUL_CORPORA to the folder that has headers/")
    return [trace for number in TEST_STORIES for trace in read_trace(folder / f"story_{number:02}.json")]


def read_trace(path: Path) -> list[Trace]:
    """The traces of one file, by its ending."""
    readers = {".json": read_story, ".har": read_archive, ".qif": read_qif}
    if path.suffix not in readers:
        raise FileNotFoundError(f"{path}: expected a file that ends in {', '.join(readers)}")
    lists = readers[path.suffix](path)
    return [Trace(path.stem, is_request(blocks), [usable(block) for block in blocks]) for blocks in lists if blocks]


def is_request(blocks: list[Fields]) -> bool:
    return any(name == b":method" for name, _ in blocks[0])


def usable(block: Fields) -> Fields:
    """Pseudo-headers first, as HTTP/1.1 in front of the pipe has it; nothing that a pipe cannot carry."""
    kept = [(name.lower(), value) for name, value in block if name.lower() not in HOP_BY_HOP]
    return sorted(kept, key=lambda pair: not pair[0].startswith(b":"))


def text(value: object) -> bytes:
    return str(value).encode()


def read_story(path: Path) -> list[list[Fields]]:
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    return [[[(text(name), text(value)) for pair in case["headers"] for name, value in pair.items()] for case in cases]]


def read_archive(path: Path) -> list[list[Fields]]:
    requests: list[Fields] = []
    responses: list[Fields] = []
    for entry in json.loads(path.read_text(encoding="utf-8-sig"))["log"]["entries"]:
        request, response = entry["request"], entry["response"]
        url = urlsplit(request["url"])
        # Entries without a host or without a final response are left out.
        if not url.hostname or response.get("status", 0) < 200:
            continue
        path_and_query = (url.path or "/") + (f"?{url.query}" if url.query else "")
        pseudo = {":method": request["method"], ":scheme": "http", ":authority": url.netloc, ":path": path_and_query}
        requests.append([(text(name), text(value)) for name, value in pseudo.items()] + plain(request, {b"host"}))
        responses.append([(b":status", text(response["status"])), *plain(response, set())])
    return [requests, responses]


def plain(message: dict, left_out: set[bytes]) -> Fields:
    fields = [(text(header["name"]).lower(), text(header["value"])) for header in message["headers"]]
    # Bodies are not part of a trace, so nothing may announce one in a request.
    left_out = {*left_out, b"content-length"} if "method" in message else left_out
    return [(name, value) for name, value in fields if name not in left_out and not name.startswith(b":")]


def read_qif(path: Path) -> list[list[Fields]]:
    blocks: list[Fields] = [[]]
    for line in path.read_bytes().split(b"\n"):
        if line and not line.startswith(b"#"):
            name, _, value = line.partition(b"\t")
            blocks[-1].append((name, value))
        elif not line and blocks[-1]:
            blocks.append([])
    blocks = [block for block in blocks if block]
    return [[block for block in blocks if is_request([block])], [block for block in blocks if not is_request([block])]]
