"""The networks of the figures, with their origin, and the connections of a client."""

from __future__ import annotations

import socket
import ssl
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from harness import boxes
from harness.authority import Authority
from harness.boxes import Boxes
from harness.processes import Child
from harness.sockets import connected

from .origin import BANNER, HALF, HALF_TLS, WEB

HERE = Path(__file__).resolve().parent
HOST, HALF_HOST = "www.example.org", "half.example.org"
NAMES = {
    HOST: WEB, "img.example.org": WEB, HALF_HOST: HALF_TLS, "half-raw.example.org": HALF, "banner.example.org": BANNER,
}  # fmt: skip
Result = TypeVar("Result")
Item = TypeVar("Item")


@contextmanager
def standing(
    kind: str, profile: str | None = None, names: dict[str, str] | None = None, **changes: Any
) -> Iterator[Boxes]:
    """Runs a network of this kind (`harness.boxes`). No name is steered: clients dial the origins' addresses, and are
    intercepted."""
    with tempfile.TemporaryDirectory(prefix="longhaul-field-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        authority = Authority(folder)
        known = NAMES | (names or {})
        shown = authority.issue(*known)
        steered = ["nobody.example.com"]
        with boxes.KINDS[kind](folder, known, steered, profile=profile, authority=authority, **changes) as box:
            program = box.internet.inside([sys.executable, "-m", "field.origin", shown.cert, shown.key])
            with Child(program, folder / "field-origin.log", cwd=HERE.parent) as origin:
                origin.wait_for_output("ready")
                yield box


@dataclass
class Reply:
    """A response, or the part of it that arrived."""

    status: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    problem: str = ""
    """Why it is not whole."""


def over_tls(connection: socket.socket, name: str | None = HOST) -> ssl.SSLSocket:
    """Starts TLS. The certificate is not checked: its bytes cross unread, and other tests compare them."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(connection, server_hostname=name, suppress_ragged_eofs=False)


def get(
    place: Boxes,
    path: str,
    *fields: str,
    direct: bool = False,
    secure: bool = False,
    host: str = HOST,
    timeout_s: float = 30.0,
    source: str = "",
) -> Reply:
    """Sends a GET on its own connection, as a client or, with `direct`, beside the origin."""
    namespace = place.internet if direct else place.clients
    try:
        with connected(namespace, WEB, 443 if secure else 80, timeout_s=timeout_s, source=source) as plain:
            connection = over_tls(plain, host) if secure else plain
            lines = "".join(f"{one}\r\n" for one in (f"Host: {host}", "Connection: close", *fields))
            connection.sendall(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
            return read(connection)
    except OSError as problem:
        return Reply(problem=repr(problem))


def read(connection: socket.socket) -> Reply:
    """Reads a response until its end."""
    data, reply = b"", Reply()
    try:
        while True:
            piece = connection.recv(65536)
            if not piece:
                break
            data += piece
            if _is_whole(data):
                break
    except OSError as problem:
        reply.problem = repr(problem)
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    reply.status = int(first.split(" ")[1]) if first.startswith("HTTP/") else 0
    reply.fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    reply.body = dechunked(body) if "chunked" in reply.fields.get("transfer-encoding", "") else body
    wanted = int(reply.fields.get("content-length", len(reply.body)))
    if len(reply.body) != wanted:
        reply.problem = f"{len(reply.body)} of {wanted} bytes; {reply.problem}"
    return reply


def _is_whole(data: bytes) -> bool:
    """True once a response with a length has all of it. Others end with the connection."""
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return False
    for line in head.lower().split(b"\r\n")[1:]:
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.split(b":")[1])
    return b"\r\ntransfer-encoding: chunked" in head.lower() and body.endswith(b"0\r\n\r\n")


def dechunked(data: bytes) -> bytes:
    """Joins chunks, as far as they go."""
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size.split(b";")[0] or b"0", 16)
        body += data[:length]
        data = data[length + 2 :]
        if not length:
            break
    return body


def all_at_once(work: Callable[[Item], Result], items: Iterable[Item], workers: int = 8) -> list[Result]:
    """Applies `work` to each item, several at a time."""
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, items))
