"""A hostile client behind a remote that tries to reach the ground's stream of names by the remote's http listener."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dnslib import DNSLabel

from harness.clients.commands import Answer, Curl
from harness.net.namespaces import Namespace

PATH = "/longhaul.names/push"
HOST = "lookups.pair.invalid"
FIELD = "longhaul-lookup: 1"
ANYWHERE = "203.0.113.80"
"""An address of the Internet. The remote takes connections to it."""
GROUND_HELLO = b"\x02h\x01"
"""The first frame of a ground."""
A = 1
CLIENTS = 5
"""The clients that the intruder claims to have. Three make a name popular."""


def frame(kind: bytes, body: bytes) -> bytes:
    """Returns a frame as in coredns-plugin/push/wire."""
    return varint(1 + len(body)) + kind + body


def varint(value: int) -> bytes:
    """Returns a number as in Protocol Buffers."""
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def hello(identity: bytes, token: bytes) -> bytes:
    """Returns the first frame of a remote that keeps names for a week."""
    return frame(b"h", varint(1) + identity + token + b"\x00\x01" + varint(7 * 24 * 3600))


def used(client: int, name: str) -> bytes:
    """Returns the frame by which a remote says that a client used a name."""
    wire = b"".join(bytes([len(label)]) + label for label in DNSLabel(name).label) + b"\0"
    return frame(b"u", client.to_bytes(4, "big") + A.to_bytes(2, "big") + wire)


def claims(page: str, names: Sequence[str]) -> bytes:
    """Returns a stream that says that many clients use these names after that of the page."""
    uses = [used(client, name) for client in range(CLIENTS) for name in (page, *names) if names]
    return hello(b"I am no remote!!", b"no token") + b"".join(uses)


def attempts(folder: Path, clients: Namespace, source: str, body: bytes) -> dict[str, Answer]:
    """Tries all ways to open the stream. Returns the response to each."""
    claimed = folder / "claims"
    claimed.write_bytes(body)
    curl = Curl(folder, clients, "--interface", source)
    return {way: curl.get(url, *options, timeout_s=5) for way, url, options in ways(claimed)}


def opens(answer: Answer) -> bool:
    """Returns true if the ground itself responded."""
    return answer.body.startswith(GROUND_HELLO)


def from_remote(folder: Path, remote: Namespace, state: Path) -> Answer:
    """Opens the stream where the remote's own CoreDNS does, which no client can reach."""
    claimed = folder / "claims"
    claimed.write_bytes(claims("", ()))
    (listener,) = state.rglob("pushed.sock")
    curl = Curl(folder, remote, "--http2-prior-knowledge", "--unix-socket", str(listener))
    return curl.get(f"http://{HOST}{PATH}", *sends(claimed), timeout_s=5)


def sends(claimed: Path) -> list[str]:
    """Returns the options of curl that send the frames in a file."""
    return ["--request", "POST", "--header", "Content-Type: application/octet-stream", "--data-binary", f"@{claimed}"]


def ways(claimed: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Yields a name for each way, with its URL and curl's options."""
    body = sends(claimed)
    own_field = ["--header", FIELD]
    versions = {"HTTP/1.1": [], "HTTP/2": ["--http2-prior-knowledge"]}
    for version, speaks in versions.items():
        for host in (HOST, f"{HOST}:80", f"{HOST}:443", f"{HOST}."):
            named = ["--header", f"Host: {host}", *speaks, *body]
            yield f"{version}, {host}", f"http://{ANYWHERE}{PATH}", named
            yield f"{version}, {host}, with the field", f"http://{ANYWHERE}{PATH}", [*named, *own_field]
    proxy = ["--proxy", f"http://{ANYWHERE}:80", *body, *own_field]
    yield "the absolute form", f"http://{HOST}{PATH}", proxy
    for port in (80, 443, 8443):
        yield f"CONNECT, port {port}", f"http://{HOST}:{port}{PATH}", ["--proxytunnel", *proxy]
