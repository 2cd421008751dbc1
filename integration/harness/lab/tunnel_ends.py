"""Both ends of a connection that a proxy passes on unread: a server that does what the first line says, and a client.

Each end runs in a process of its own, in its own namespace, and needs the standard library alone:

    python tunnel_ends.py serve ADDRESS BANNER CERT KEY LOG [PORT...]     TLS where the first byte says so
    python tunnel_ends.py ask JSON                       one exchange; prints what came and how it ended, as JSON

The first line of a client begins with a byte that is no HTTP, and names what the server does:

    close N     sends N bytes, then ends cleanly
    reset N     sends N bytes, waits until all are acknowledged, then resets the connection
    count       reads to the end, then sends the number of bytes and how they ended, and ends cleanly
    echo        sends each line back

A line `GET /ws` opens a WebSocket that echoes bytes, and `GET /sse` a stream of events: one at once, the next after the
seconds in its query. A server on a BANNER address speaks first.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import socket
import ssl
import struct
import sys
import termios
import threading
import time
from typing import Any

MARK = b"\x01"
"""The first byte of a client that does not speak HTTP."""
BANNER = b"220 a server that speaks first\r\n"
PIECE = bytes(range(256)) * 256
TLS_HANDSHAKE = 0x16
EVENTS = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)


class Ended(Exception):  # noqa: N818 - it reads as what happened
    """The connection ended: `fin`, `reset` or `timeout`."""

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how


class Plain:
    """A TCP connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.rest = b""
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _read(self) -> bytes:
        try:
            got = self.sock.recv(65536)
        except TimeoutError:
            raise Ended("timeout") from None
        except OSError:
            raise Ended("reset") from None
        if not got:
            raise Ended("fin")
        return got

    def read(self) -> bytes:
        """The next bytes. Raises `Ended` at the end."""
        if self.rest:
            taken, self.rest = self.rest, b""
            return taken
        return self._read()

    def line(self) -> bytes:
        """The next line, without its end."""
        seen = b""
        while b"\n" not in seen:
            seen += self.read()
        line, _, self.rest = seen.partition(b"\n")
        return line

    def send(self, data: bytes, *, fin: bool = False) -> None:
        """Sends bytes. With `fin`, the end is in the last packet of them."""
        if fin:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        self.sock.sendall(data)
        if fin:
            self.end()

    def end(self) -> None:
        """Ends this direction."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def unacknowledged(self) -> int:
        """The bytes that the other end has not acknowledged."""
        return struct.unpack("i", fcntl.ioctl(self.sock, termios.TIOCOUTQ, b"\0" * 4))[0]

    def reset(self) -> None:
        """Resets the connection after its last byte was acknowledged."""
        while self.unacknowledged():
            time.sleep(0.005)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class Tls(Plain):
    """The same within TLS. The TLS of Python's sockets cannot end one direction alone."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, name: str | None = None) -> None:
        super().__init__(sock)
        self.inward, self.outward = ssl.MemoryBIO(), ssl.MemoryBIO()
        server = context.protocol == ssl.PROTOCOL_TLS_SERVER
        self.tls = context.wrap_bio(self.inward, self.outward, server_side=server, server_hostname=name)
        self.told = False
        """The other end has said `close_notify`."""
        self.ends_at_close_notify = False
        """Like most clients, this one does not wait for the end of TCP."""
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._flush()
                self.inward.write(self._read())
        self._flush()

    def _flush(self) -> None:
        self.sock.sendall(self.outward.read())

    def read(self) -> bytes:
        if self.rest:
            taken, self.rest = self.rest, b""
            return taken
        while True:
            try:
                got = self.tls.read(65536)
                if got:
                    return got
                self.told = True
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLZeroReturnError:
                self.told = True
            except ssl.SSLError:
                raise Ended("broken") from None
            if self.told and self.ends_at_close_notify:
                raise Ended("fin")
            self.inward.write(self._read())

    def send(self, data: bytes, *, fin: bool = False) -> None:
        for start in range(0, len(data), 16384):
            self.tls.write(data[start : start + 16384])
            if not fin:
                self._flush()
        if fin:
            self._notify()
            self.sock.sendall(self.outward.read())
            super().end()

    def _notify(self) -> None:
        with contextlib.suppress(ssl.SSLError):
            self.tls.unwrap()

    def end(self) -> None:
        self._notify()
        with contextlib.suppress(OSError):
            self._flush()
        super().end()


def piece(position: int, size: int) -> bytes:
    """The bytes of a download from `position` on, at most `size`."""
    start = position % len(PIECE)
    return (PIECE[start:] + PIECE[:start])[:size]


def serve_download(channel: Plain, size: int, *, reset: bool) -> None:
    """Sends `size` bytes, and ends."""
    for position in range(0, size, 65536):
        channel.send(piece(position, min(65536, size - position)))
    if reset:
        channel.reset()
        return
    channel.end()
    with contextlib.suppress(Ended):
        while True:
            channel.read()


def serve_count(channel: Plain, log: str) -> None:
    """Reads to the end, then sends what was read."""
    count, how = 0, "fin"
    try:
        while True:
            count += len(channel.read())
    except Ended as ended:
        how = ended.how
    with open(log, "a") as lines:  # noqa: PTH123
        lines.write(json.dumps({"count": count, "end": how, "at": time.time()}) + "\n")
    with contextlib.suppress(OSError):
        channel.send(f"{count} {how}\n".encode())
        channel.end()


def serve_http(channel: Plain, path: str, log: str) -> None:
    """A WebSocket of bare bytes, or a stream of events."""
    while channel.line().strip():
        pass
    if path.startswith("/ws"):
        channel.send(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\r\n")
        if path == "/ws-close":
            channel.send(b"bye\n")
            channel.end()
            with open(log, "a") as lines:  # noqa: PTH123
                lines.write(json.dumps({"closed": time.time()}) + "\n")
        with contextlib.suppress(Ended):
            while True:
                channel.send(channel.read())
        return
    channel.send(EVENTS + chunk(b"data: first\n\n"))
    time.sleep(float(path.partition("?")[2] or 0))
    with contextlib.suppress(OSError):
        channel.send(chunk(b"data: second\n\n") + b"0\r\n\r\n")


def chunk(data: bytes) -> bytes:
    """A chunk of HTTP/1.1."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def serve(sock: socket.socket, context: ssl.SSLContext, log: str) -> None:
    """One connection."""
    with contextlib.suppress(Ended, OSError):
        first = sock.recv(1, socket.MSG_PEEK)
        channel = Tls(sock, context) if first and first[0] == TLS_HANDSHAKE else Plain(sock)
        words = channel.line().lstrip(MARK).decode().split()
        match words:
            case ["close", size]:
                serve_download(channel, int(size), reset=False)
            case ["reset", size]:
                serve_download(channel, int(size), reset=True)
            case ["count"]:
                serve_count(channel, log)
            case ["echo"]:
                while True:
                    channel.send(channel.line() + b"\n")
            case ["GET", path, *_]:
                serve_http(channel, path, log)
    with contextlib.suppress(OSError):
        sock.close()


def serve_banner(sock: socket.socket) -> None:
    """A server that speaks first."""
    with contextlib.suppress(OSError):
        sock.sendall(BANNER)
        while got := sock.recv(4096):
            sock.sendall(got)
    sock.close()


def listen(address: str, port: int, handle: Any, congestion: str | None) -> None:
    """Accepts connections for ever, with this congestion control."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, port), family=family, backlog=512)
    if congestion:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())

    def accept() -> None:
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=handle, args=(sock,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def serve_for_ever(options: argparse.Namespace) -> None:
    """The server, on two addresses."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.cert, options.key)
    for port in options.ports:
        listen(options.address, port, lambda sock: serve(sock, context, options.log), options.congestion)
        listen(options.banner, port, serve_banner, options.congestion)
    print("ready", flush=True)
    threading.Event().wait()


def connect(ask: dict[str, Any]) -> Plain:
    """The client's connection."""
    sock = socket.socket(socket.AF_INET6 if ":" in ask["address"] else socket.AF_INET)
    if "pause" in ask or "takes" in ask:
        # So the kernel holds little while the client does not read.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    sock.settimeout(ask.get("timeout", 120))
    sock.connect((ask["address"], ask["port"]))
    if not ask.get("tls"):
        return Plain(sock)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return Tls(sock, context, name=ask.get("name"))


def ask_download(channel: Plain, ask: dict[str, Any]) -> dict[str, Any]:
    """A download: the number of right bytes, the seconds to the last one, and the end."""
    channel.send(MARK + f"{ask['end']} {ask['size']}\n".encode(), fin=ask.get("fin", False))
    if isinstance(channel, Tls):
        channel.ends_at_close_notify = ask.get("ends_at_close_notify", False)
    got, right, last_s = 0, True, None
    try:
        while True:
            data = channel.read()
            last_s = time.monotonic() - ask["began"]
            position = 0
            while position < len(data):
                part = piece(got + position, min(65536, len(data) - position))
                right = right and data[position : position + len(part)] == part
                position += len(part)
            got += len(data)
            # As a player does whose buffer is full, or a phone far from its access point.
            time.sleep(ask.pop("pause", 0) + len(data) / ask.get("takes", 1e12))
    except Ended as ended:
        seen = {"bytes": got, "right": right, "end": ended.how, "told": getattr(channel, "told", None)}
        return seen | {"last_s": last_s}


def ask_half(channel: Plain, ask: dict[str, Any]) -> dict[str, Any]:
    """An upload whose end the client says, and the response behind it."""
    body = piece(0, ask["size"]) if ask["size"] <= len(PIECE) else PIECE * (ask["size"] // len(PIECE))
    if ask.get("late"):
        channel.send(MARK + b"count\n")
        time.sleep(ask["late"])
        channel.send(body, fin=True)
    else:
        channel.send(MARK + b"count\n" + body, fin=True)
    answer, how = b"", ""
    try:
        while True:
            answer += channel.read()
    except Ended as ended:
        how = ended.how
    return {"sent": len(body), "answer": answer.decode(), "end": how}


def ask_reset(channel: Plain, ask: dict[str, Any]) -> dict[str, Any]:
    """An upload that the client resets after its last byte."""
    channel.send(MARK + b"count\n" + PIECE * (ask["size"] // len(PIECE)))
    channel.reset()
    return {"sent": ask["size"] // len(PIECE) * len(PIECE)}


def opening(path: str, host: str) -> bytes:
    """A request for a WebSocket."""
    return (
        f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
        "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
    ).encode()


def ask_idle(channel: Plain, ask: dict[str, Any]) -> dict[str, Any]:
    """An exchange, silence, and an exchange."""
    kind = ask.get("kind", "echo")
    if kind == "sse":
        channel.send(
            f"GET /sse?{ask['idle']} HTTP/1.1\r\nhost: {ask['name']}\r\naccept: text/event-stream\r\n\r\n".encode()
        )
        return {"survived": _reads(channel, b"first") and _reads(channel, b"second")}
    if kind == "ws":
        channel.send(opening("/ws", ask["name"]))
        if not _reads(channel, b"\r\n\r\n"):
            return {"survived": False, "at": "opening"}
    else:
        channel.send(MARK + b"echo\n")
    channel.send(b"before\n")
    if not _reads(channel, b"before\n"):
        return {"survived": False, "at": "before"}
    began = time.monotonic()
    channel.sock.settimeout(ask["idle"])
    with contextlib.suppress(Ended):
        channel.read()
    silent = time.monotonic() - began
    if silent < ask["idle"] - 1:
        return {"survived": False, "at": silent}
    channel.sock.settimeout(30)
    try:
        channel.send(b"after\n")
        return {"survived": _reads(channel, b"after\n"), "at": "after"}
    except OSError:
        return {"survived": False, "at": "after"}


def _reads(channel: Plain, wanted: bytes) -> bool:
    seen = channel.rest
    channel.rest = b""
    with contextlib.suppress(Ended):
        while wanted not in seen:
            seen += channel.read()
        return True
    return False


def ask_banner(ask: dict[str, Any]) -> dict[str, Any]:
    """The seconds until a server that speaks first is heard."""
    began = time.monotonic()
    sock = socket.create_connection((ask["address"], ask["port"]), timeout=ask.get("timeout", 100))
    connected = time.monotonic() - began
    try:
        got = sock.recv(4096)
    except OSError:
        got = b""
    return {"seconds": time.monotonic() - began, "connected": connected, "right": got == BANNER}


def ask_websocket_end(channel: Plain, ask: dict[str, Any]) -> dict[str, Any]:
    """The time at which the client sees that the server has ended a WebSocket."""
    channel.send(opening("/ws-close", ask["name"]))
    if not _reads(channel, b"bye\n"):
        return {"end": "never opened"}
    said = time.monotonic()
    try:
        while True:
            channel.read()
    except Ended as ended:
        return {"end": ended.how, "seconds": time.monotonic() - said}


def ask(ask: dict[str, Any]) -> dict[str, Any]:
    """One exchange of a client."""
    if ask["do"] == "banner":
        return ask_banner(ask)
    do = {"download": ask_download, "half": ask_half, "reset": ask_reset, "idle": ask_idle, "ws_end": ask_websocket_end}
    began = time.monotonic()
    try:
        answer = do[ask["do"]](connect(ask), ask | {"began": began})
    except Ended as ended:
        answer = {"end": ended.how, "at": "handshake"}
    except OSError as problem:
        answer = {"end": str(problem)}
    return answer | {"seconds": round(time.monotonic() - began, 3)}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    server = commands.add_parser("serve")
    for name in ("address", "banner", "cert", "key", "log"):
        server.add_argument(name)
    server.add_argument("--congestion")
    server.add_argument("ports", type=int, nargs="*", default=[80, 443])
    commands.add_parser("ask").add_argument("ask", type=json.loads)
    options = parser.parse_args()
    if options.command == "serve":
        serve_for_ever(options)
    print(json.dumps(ask(options.ask)))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
