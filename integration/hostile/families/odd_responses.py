"""Origins whose responses are not HTTP. Each costs its own request, and no other client's connection may end."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable

from ..beds import HOST, Target, fresh
from ..cases import Case
from ..wire import NOTHING, Reply

OK_BODY = b"content-length: 2\r\n\r\nok"

RESPONSES: dict[str, bytes] = {
    "101 that nobody asked for": b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: foo\r\n\r\n",
    "101 to websocket": b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    **{
        f"status {code}": f"HTTP/1.1 {code} Odd\r\n".encode() + OK_BODY
        for code in ("0", "000", "099", "99", "100", "199", "600", "999", "1000", "65535", "-1", "2e2", "2 00")
    },
    "no status": b"HTTP/1.1\r\n" + OK_BODY,
    "HTTP/9.9": b"HTTP/9.9 200 OK\r\n" + OK_BODY,
    "HTTP/0.9": b"just a body",
    "header without a name": b"HTTP/1.1 200 OK\r\n: value\r\n" + OK_BODY,
    "header with a space in its name": b"HTTP/1.1 200 OK\r\nx y: z\r\n" + OK_BODY,
    "header with a NUL": b"HTTP/1.1 200 OK\r\nx-a: a\0b\r\n" + OK_BODY,
    "header with a bare CR": b"HTTP/1.1 200 OK\r\nx-a: a\rb\r\n" + OK_BODY,
    "header with bytes beyond ASCII": b"HTTP/1.1 200 OK\r\nx-a: \xff\xfe\r\n" + OK_BODY,
    "pseudo-header as a header": b"HTTP/1.1 200 OK\r\n:status: 500\r\n" + OK_BODY,
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok!",
    "length and chunks": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",  # noqa: E501
    "negative length": b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nok",
    "bad chunk size": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n",
    "chunks that break off": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nok",
    "trailers": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-after: 1\r\n\r\n",
    "forbidden trailers": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\ncontent-length: 9\r\n:status: 1\r\n\r\n",  # noqa: E501
    "connection headers": b"HTTP/1.1 200 OK\r\nconnection: x-a, close\r\nx-a: 1\r\nkeep-alive: timeout=5\r\nproxy-connection: x\r\n"  # noqa: E501
    + OK_BODY,
    "upgrade header with 200": b"HTTP/1.1 200 OK\r\nupgrade: h2c\r\nconnection: upgrade\r\n" + OK_BODY,
    "te header": b"HTTP/1.1 200 OK\r\nte: trailers\r\n" + OK_BODY,
    "a header of 60 KB": b"HTTP/1.1 200 OK\r\nx-a: " + b"a" * 60_000 + b"\r\n" + OK_BODY,
    "a header of 300 KB": b"HTTP/1.1 200 OK\r\nx-a: " + b"a" * 300_000 + b"\r\n" + OK_BODY,
    "190 headers": b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: 1\r\n" % number for number in range(190)) + OK_BODY,
    "2000 headers": b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: 1\r\n" % number for number in range(2000)) + OK_BODY,
    "204 with a body": b"HTTP/1.1 204 No Content\r\n" + OK_BODY,
    "304 with a body": b"HTTP/1.1 304 Not Modified\r\n" + OK_BODY,
    "103 and then 200": b"HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\n" + OK_BODY,
    "103 without an end": b"HTTP/1.1 103 Early Hints\r\n\r\n" * 500,
    "nothing": b"",
    "half a status line": b"HTTP/1.1 20",
    "two responses": (b"HTTP/1.1 200 OK\r\n" + OK_BODY) * 2,
    "its own hello": b"HTTP/1.1 200 OK\r\nx-longhaul-headers: -\r\nx-longhaul-outcome: hit\r\n" + OK_BODY,
}

IS_SHORT = (
    "101 that nobody asked for", "status 1000", "status 099", "status 000", "status 65535", "header with a NUL", "forbidden trailers",  # noqa: E501
    "a header of 300 KB", "2000 headers", "its own hello",
)  # fmt: skip


def lost_connections(target: Target, response: bytes) -> tuple[float, Reply, Reply]:
    """Returns the pipe's connections that ended meanwhile, another client's long download, and the response to the
    attack."""
    name = "envoy_cluster_upstream_cx_destroy_with_active_rq"
    before = _pipe(target, name)
    victim: list[Reply] = [NOTHING]
    gate = threading.Event()

    def download() -> None:
        gate.set()
        victim[0] = target.get(f"/big/3000000?word={fresh('victim')}")

    thread = threading.Thread(target=download)
    thread.start()
    gate.wait()
    reply = NOTHING
    for _ in range(3):
        word = fresh("odd")
        reply = target.get(f"/raw/{base64.urlsafe_b64encode(response).decode()}/{word}")
    thread.join()
    return _pipe(target, name) - before, victim[0], reply


def _pipe(target: Target, name: str) -> float:
    if not target.both:
        return 0.0
    return sum(
        value
        for key, value in target.envoys[0].metrics().items()
        if key.startswith(name) and 'envoy_cluster_name="pipe"' in key
    )


def _attack(response: bytes) -> Callable[[Target], str]:
    def attack(target: Target) -> str:
        lost, victim, reply = lost_connections(target, response)
        if lost:
            return f"{lost:.0f} connections of the pipe ended"
        if not victim.is_whole or len(victim.body) != 3_000_000:
            return f"another client's download broke: {victim.status}, {len(victim.body)} bytes"
        if reply.status == 101 or 0 < reply.status < 200:
            return f"a client got status {reply.status}"
        if any(name.startswith("x-longhaul-") for name, _ in reply.headers):
            return "a header of Longhaul's own reached a client"
        return "" if target.is_alive() else "nobody is served any more"

    return attack


def _over_http2(target: Target) -> str:
    """Objects of many pages share a browser's HTTP/2 connection: an odd response must not end it."""
    if not target.has_tls:
        # HTTP/2 without TLS passes unread, so no client of a pair shares a connection of it.
        return ""
    shared = target.http2_tls()

    def get(path: str) -> Reply:
        return shared.get("https", "pep.example.net", f"/{HOST}{path}", [("sec-fetch-dest", "image")])

    for name in IS_SHORT[:5]:
        odd = get(f"/raw/{base64.urlsafe_b64encode(RESPONSES[name]).decode()}/{fresh('odd')}")
        if odd.status and not 200 <= odd.status < 600:
            return f"{name}: an HTTP/2 client got :status {odd.status}"
        word = fresh("after")
        after = get(f"/say?b={word}")
        if after.body != word.encode():
            return f"{name}: the next request of the connection got {after.status}"
    return ""


CASES = [
    *(Case(name, _attack(response), is_long=name not in IS_SHORT) for name, response in RESPONSES.items()),
    Case("on a browser's shared HTTP/2 connection", _over_http2),
]
