"""Light clients that share a link, and the server that they load from.

Each end runs in a process of its own, in its own namespace, and needs the standard library alone:

    python light_clients.py serve CERT KEY PAGE ADDRESS..   ports 80 and 443 of each address
    python light_clients.py load JSON                       does what the list says, side by side; prints the results
    python light_clients.py received ADDRESS                prints the bytes that the server has read from each client

The server responds to `GET /BYTES/..` with so many bytes, which do not shrink. `?type=` is their type. To
`POST /CLIENT/..`, it reads the body and responds with its length. `GET /page/NAME` has the text of the file PAGE, with
the name in place of `FRESH`. A path that ends in `/close` ends the connection behind the response.

A client does one of these:

    bulk    several downloads or uploads at a time, for some seconds: the bytes of downloads after `skip_s` seconds
    page    a document, then its objects on up to six connections to each host: the seconds, and true if all were whole
    get     requests one after the other on new connections: the seconds of each
    idle    downloads that the client leaves unread
    user    new pages for some seconds, with pauses: the seconds of each, and true if all were whole
    beat    requests at fixed times, whether earlier ones have ended or not: when each was sent, and its seconds
"""

from __future__ import annotations

import argparse
import contextlib
import json
import queue
import random
import signal
import socket
import ssl
import threading
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RECEIVED: Counter[str] = Counter()
"""The bytes of uploads that the server has read, by client."""
PAGE: list[str] = []
"""The parts of the page between the places of a name."""
NOISE = random.Random(1).randbytes(1 << 20)
CONNECTIONS_TO_A_HOST = 6
PIECE = 16384
UPLOADED = 2048
"""The bytes of an upload that the server reads, and counts, at once."""


def noise(position: int, size: int) -> bytes:
    """The bytes of a response from `position` on, at most `size`."""
    start = position % len(NOISE)
    return NOISE[start : start + size]


class Stream:
    """A connection, in TLS or not, read by lines and bytes."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.file = sock.makefile("rb", buffering=65536)

    def header(self) -> tuple[str, dict[str, str]]:
        """The first line and the fields. Raises `EOFError` at the end."""
        first = self.file.readline().decode("latin-1").strip()
        if not first:
            raise EOFError
        fields = {}
        while line := self.file.readline().decode("latin-1").strip():
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
        return first, fields

    def close(self) -> None:
        """Closes both directions."""
        with contextlib.suppress(OSError):
            self.file.close()
            self.sock.close()


def serve_one(stream: Stream) -> bool:
    """One request. Returns false if the connection ends behind it."""
    first, fields = stream.header()
    method, target, _ = first.split(" ", 2)
    path, _, query = target.partition("?")
    ends = path.endswith("/close")
    if method == "POST":
        count = 0
        length = int(fields["content-length"])
        client = path.split("/")[1]
        while count < length and (got := stream.file.read(min(UPLOADED, length - count))):
            count += len(got)
            RECEIVED[client] += len(got)
        size, body = len(str(count)), str(count).encode()
    elif path == "/received":
        body = json.dumps(RECEIVED).encode()
        size = len(body)
    elif path.startswith("/page/"):
        body = path.removeprefix("/page/").join(PAGE).encode()
        size, query = len(body), "type=text/html"
    else:
        size, body = int(path.split("/")[1]), b""
    kind = query.partition("type=")[2] or "application/octet-stream"
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {size}\r\ncache-control: no-store\r\n"
    head += "connection: close\r\n" if ends else ""
    stream.sock.sendall(head.encode() + b"\r\n" + body)
    for position in range(0, size - len(body), PIECE):
        stream.sock.sendall(noise(position, min(PIECE, size - position)))
    return not ends


def serve_connection(sock: socket.socket, context: ssl.SSLContext | None) -> None:
    """Requests until the end."""
    with contextlib.suppress(OSError, EOFError, ValueError):
        sock.settimeout(600)
        if context:
            sock = context.wrap_socket(sock, server_side=True)
        stream = Stream(sock)
        while serve_one(stream):
            pass
        if isinstance(sock, ssl.SSLSocket):
            sock.unwrap()
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(PIECE):
            pass
    with contextlib.suppress(OSError):
        sock.close()


def serve(cert: str, key: str, addresses: list[str]) -> None:
    """Serves for ever."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    def accept(listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        while True:
            sock, _ = listener.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve_connection, args=(sock, tls), daemon=True).start()

    for address in addresses:
        for port, tls in ((80, None), (443, context)):
            listener = socket.create_server((address, port), backlog=512)
            threading.Thread(target=accept, args=(listener, tls), daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


@dataclass
class Client:
    """Where a client is, and how it connects."""

    address: str
    tls: bool
    timeout_s: float = 120
    context: ssl.SSLContext = field(init=False)

    def __post_init__(self) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE

    def connect(self, host: str, to: str) -> Stream:
        """A new connection."""
        source = (self.address, 0) if self.address else None
        sock = socket.create_connection((to, 443 if self.tls else 80), self.timeout_s, source_address=source)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Stream(self.context.wrap_socket(sock, server_hostname=host) if self.tls else sock)


def ask(stream: Stream, host: str, path: str) -> int:
    """Sends a request. Returns the length of the response, whose header is read."""
    stream.sock.sendall(f"GET {path} HTTP/1.1\r\nhost: {host}\r\naccept-encoding: gzip, br\r\n\r\n".encode())
    first, fields = stream.header()
    if " 200 " not in first + " ":
        raise EOFError(first)
    return int(fields["content-length"]) if "content-length" in fields else -1


def read_chunked(stream: Stream) -> int:
    """Reads a chunked body. Returns its length."""
    count = 0
    while size := int(stream.file.readline().strip() or b"0", 16):
        count += len(stream.file.read(size))
        stream.file.readline()
    while stream.file.readline().strip():
        pass
    return count


def get(client: Client, host: str, to: str, path: str, stream: Stream | None = None) -> tuple[Stream, bool]:
    """A whole response. Returns the connection and whether all bytes came."""
    stream = stream or client.connect(host, to)
    length = ask(stream, host, path)
    if length < 0:
        return stream, read_chunked(stream) >= 0
    count, right = 0, True
    while count < length and (got := stream.file.read(min(PIECE, length - count))):
        right = right and got == noise(count, len(got))
        count += len(got)
    return stream, right and count == length


def page(client: Client, job: dict[str, Any]) -> dict[str, Any]:
    """Loads a page."""
    began = time.monotonic()
    document, objects = job["document"], job["objects"]
    whole = []
    try:
        stream, right = get(client, *document)
        whole.append(right)
    except (OSError, EOFError, ValueError):
        return {"seconds": time.monotonic() - began, "whole": False}
    waiting: dict[tuple[str, str], queue.SimpleQueue[str]] = {}
    for host, to, path in objects:
        waiting.setdefault((host, to), queue.SimpleQueue()).put(path)

    def work(host: str, to: str, own: Stream | None) -> None:
        paths = waiting[host, to]
        while not paths.empty():
            try:
                path = paths.get_nowait()
            except queue.Empty:
                break
            try:
                own, right = get(client, host, to, path, own)
                whole.append(right)
            except (OSError, EOFError, ValueError):
                whole.append(False)
                own = None
        if own:
            own.close()

    first = (document[0], document[1])
    workers = []
    for (host, to), paths in waiting.items():
        for number in range(min(CONNECTIONS_TO_A_HOST, paths.qsize())):
            own = stream if (host, to) == first and number == 0 else None
            workers.append(threading.Thread(target=work, args=(host, to, own), daemon=True))
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.monotonic() - began
    return {"seconds": seconds, "whole": all(whole) and len(whole) == len(objects) + 1}


def bulk(client: Client, job: dict[str, Any]) -> dict[str, Any]:
    """Downloads or uploads for some seconds."""
    until = time.monotonic() + job["seconds"]
    counted_from = time.monotonic() + job.get("skip_s", 0)
    counts = [0] * job["streams"]

    def download(number: int) -> None:
        stream = client.connect(job["host"], job["to"])
        ask(stream, job["host"], f"/{1 << 30}/{number}")
        while time.monotonic() < until:
            got = stream.sock.recv(PIECE)
            if not got:
                return
            if time.monotonic() >= counted_from:
                counts[number] += len(got)
        stream.close()

    def upload(number: int) -> None:
        stream = client.connect(job["host"], job["to"])
        head = f"POST /{client.address}/{number} HTTP/1.1\r\nhost: {job['host']}\r\ncontent-length: {1 << 30}\r\n\r\n"
        stream.sock.sendall(head.encode())
        position = 0
        while time.monotonic() < until:
            stream.sock.sendall(noise(position, 2048))
            position += 2048
        stream.close()

    def work(number: int) -> None:
        while time.monotonic() < until:
            with contextlib.suppress(OSError, EOFError, ValueError):
                (upload if job.get("upload") else download)(number)
            time.sleep(0.2)

    workers = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(job["streams"])]
    for worker in workers:
        worker.start()
    time.sleep(max(0.0, until - time.monotonic()))
    return {"bytes": sum(counts)}


def gets(client: Client, job: dict[str, Any]) -> dict[str, Any]:
    """Requests, each on a connection of its own."""
    seconds, whole = [], []
    for number in range(job["number"]):
        began = time.monotonic()
        try:
            stream, right = get(client, job["host"], job["to"], job["path"].replace("NUMBER", str(number)))
            whole.append(right)
            stream.close()
        except (OSError, EOFError, ValueError):
            whole.append(False)
        seconds.append(time.monotonic() - began)
        time.sleep(job.get("pause_s", 0))
    return {"seconds": seconds, "whole": all(whole)}


def idle(client: Client, job: dict[str, Any]) -> dict[str, Any]:
    """Responses that nobody reads."""
    streams = []
    for number in range(job["streams"]):
        with contextlib.suppress(OSError, EOFError, ValueError):
            stream = client.connect(job["host"], job["to"])
            ask(stream, job["host"], f"/{1 << 30}/{number}")
            streams.append(stream)
    time.sleep(job["seconds"])
    return {"open": len(streams)}


def user(client: Client, job: dict[str, Any]) -> dict[str, Any]:
    """Loads one page after the other. `think_s` is the mean of the pauses, and `FRESH` stands for a number in URLs."""
    draw = random.Random(job["name"])
    until = time.monotonic() + job["seconds"]
    text = json.dumps({"document": job["document"], "objects": job["objects"]})
    pages: list[dict[str, Any]] = []
    time.sleep(draw.uniform(0, job["think_s"]))
    while time.monotonic() < until:
        pages.append(page(client, json.loads(text.replace("FRESH", f"{job['name']}-{len(pages)}"))))
        time.sleep(draw.uniform(0.5, 1.5) * job["think_s"])
    return {"seconds": [one["seconds"] for one in pages], "whole": all(one["whole"] for one in pages)}


def beat(client: Client, job: dict[str, Any]) -> dict[str, Any]:
    """Sends requests at fixed times. `sent` is the time of the machine's monotonic clock."""
    requests: list[dict[str, Any]] = [{} for _ in range(job["number"])]

    def one(number: int) -> None:
        sent = time.monotonic()
        try:
            stream, right = get(client, job["host"], job["to"], job["path"].replace("NUMBER", str(number)))
            stream.close()
        except (OSError, EOFError, ValueError):
            right = False
        requests[number] = {"sent": sent, "seconds": time.monotonic() - sent, "whole": right}

    senders = []
    for number in range(job["number"]):
        senders.append(threading.Thread(target=one, args=(number,), daemon=True))
        senders[-1].start()
        time.sleep(job["every_s"])
    for sender in senders:
        sender.join()
    return {"requests": requests}


def load(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Does all jobs side by side, each after its `after_s`."""
    kinds = {"page": page, "bulk": bulk, "get": gets, "idle": idle, "user": user, "beat": beat}
    results: list[dict[str, Any]] = [{} for _ in jobs]

    def work(number: int, job: dict[str, Any]) -> None:
        time.sleep(job.get("after_s", 0))
        client = Client(job.get("from", ""), job["tls"], job.get("timeout_s", 120))
        results[number] = kinds[job["do"]](client, job)

    workers = [threading.Thread(target=work, args=pair, daemon=True) for pair in enumerate(jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results


def main() -> None:
    """The command line."""
    # Ctrl-C reaches every process of a terminal. A client ends without a word.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    server = commands.add_parser("serve")
    server.add_argument("cert")
    server.add_argument("key")
    server.add_argument("page", type=Path)
    server.add_argument("addresses", nargs="+")
    commands.add_parser("load").add_argument("jobs", type=json.loads)
    commands.add_parser("received").add_argument("address")
    options = parser.parse_args()
    if options.command == "serve":
        PAGE.extend(options.page.read_text().split("FRESH"))
        serve(options.cert, options.key, options.addresses)
    if options.command == "received":
        with urllib.request.urlopen(f"http://{options.address}/received") as response:
            print(response.read().decode())
        return
    print(json.dumps(load(options.jobs)), flush=True)


if __name__ == "__main__":
    main()
