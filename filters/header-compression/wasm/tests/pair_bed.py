"""Two real Envoys, a tap on the pipe between them, an origin behind and raw clients in front, all on loopback."""

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "integration"))

from harness.boxes import filters
from harness.host.waiting import wait_for
from harness.origins.http1 import Client, Message, Origin, message

PREFACE_BYTES = 24
FRAME_HEAD_BYTES = 9
HEADERS, CONTINUATION = 1, 9
# With the filter, a larger table would only make the index of constant fields longer (README.md, Configuration).
TABLE_BYTES_PACKED = 4096
TABLE_BYTES_PEER = 65536


def plain_answer(_: Message) -> Iterator[bytes]:
    yield message(b"HTTP/1.1 200 OK", [(b"content-length", b"2"), (b"x-origin", b"yes")], b"ok")


@dataclass
class Direction:
    """The header blocks in one direction of the pipe: whole frames with their heads, one entry for each block."""

    blocks: list[int] = field(default_factory=list)
    payloads: list[bytes] = field(default_factory=list)


class Tap:
    """Stands between the two Envoys and counts the bytes of HEADERS and CONTINUATION frames."""

    def __init__(self, ground_port: int) -> None:
        self.ground_port = ground_port
        self.to_ground, self.to_remote = Direction(), Direction()
        self.connections = 0
        self.sockets: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.ground_port))
            except OSError:
                near.close()
                continue
            self.connections += 1
            self.sockets += [near, far]
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for ends in ((near, far, self.to_ground, PREFACE_BYTES), (far, near, self.to_remote, 0)):
                threading.Thread(target=self.carry, args=ends, daemon=True).start()

    def carry(self, source: socket.socket, sink: socket.socket, direction: Direction, skip: int) -> None:
        held = b""
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                held = self.count(held + data, direction, skip)
                skip = max(0, skip - len(data))
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        # Each direction closes the socket that it read from, which no other thread reads.
        source.close()

    @staticmethod
    def count(held: bytes, direction: Direction, skip: int) -> bytes:
        if skip:
            if len(held) < skip:
                return held
            held = held[skip:]
        while len(held) >= FRAME_HEAD_BYTES:
            length = int.from_bytes(held[:3], "big")
            if len(held) < FRAME_HEAD_BYTES + length:
                break
            kind, payload = held[3], held[FRAME_HEAD_BYTES : FRAME_HEAD_BYTES + length]
            if kind == HEADERS:
                direction.blocks.append(FRAME_HEAD_BYTES + length)
                direction.payloads.append(payload)
            elif kind == CONTINUATION and direction.blocks:
                direction.blocks[-1] += FRAME_HEAD_BYTES + length
                direction.payloads[-1] += payload
            held = held[FRAME_HEAD_BYTES + length :]
        return held

    def cut(self) -> None:
        """Ends the pipe's connections, as an outage does."""
        sockets, self.sockets = self.sockets, []
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()


# The filter must see what the other end sent.
MANAGER = {
    "generate_request_id": False,
    "server_header_transformation": "PASS_THROUGH",
    "stream_idle_timeout": "0s",
    "upgrade_configs": [{"upgrade_type": "websocket"}],
}
ROUTER = {"suppress_envoy_headers": True}


def ground_bootstrap(origin_port: int, config: dict | str | None, table_bytes: int) -> dict:
    """The ground: HTTP/2 in, the filter first of all, HTTP/1.1 to the origin. It resolves every name except `-`, which
    no client requests."""
    http2 = {"hpack_table_size": table_bytes, "allow_connect": True}
    return filters.bootstrap(
        "origin",
        filters.address(origin_port),
        [] if config is None else [filters.http_filter("ground", "header-compression", config)],
        manager={**MANAGER, "codec_type": "HTTP2", "http2_protocol_options": http2},
        router=ROUTER,
        unknown="-",
    )


def remote_bootstrap(pipe_port: int, config: dict | str | None, table_bytes: int) -> dict:
    """The remote: HTTP/1.1 in, HTTP/2 out, the filter in the pipe's cluster, and the retry that it requires."""
    http2 = {"hpack_table_size": table_bytes, "allow_connect": True}
    options: dict = {"explicit_http_config": {"http2_protocol_options": http2}}
    if config is not None:
        codec = filters.typed(f"{filters.EXTENSIONS}.filters.http.upstream_codec.v3.UpstreamCodec")
        packing = filters.http_filter("remote", "header-compression", config)
        options["http_filters"] = [packing, {"name": "codec", "typed_config": codec}]
    retry = {
        "retry_on": "retriable-headers",
        "num_retries": 2,
        "retriable_headers": [{"name": "x-longhaul-retry", "present_match": True}],
        "retry_back_off": {"base_interval": "0.001s", "max_interval": "0.002s"},
    }
    pipe = filters.address(pipe_port)
    route = {"retry_policy": retry}
    return filters.bootstrap("pipe", pipe, [], manager=MANAGER, route=route, router=ROUTER, options=options)


class Envoy(filters.Envoy):
    """One end."""

    def packing(self) -> dict[str, int]:
        """Returns the filter's counters."""
        return self.counters("header_compression")


REMOTE = {"role": "remote"}
GROUND = {"role": "ground"}


class Pair:
    """Remote, tap, ground and origin. A configuration of None leaves the filter out on that side."""

    def __init__(
        self,
        remote: dict | str | None = REMOTE,
        ground: dict | str | None = GROUND,
        origin: Origin | None = None,
        table_bytes: int = TABLE_BYTES_PACKED,
        concurrency: int = 1,
    ) -> None:
        filters.envoy_and_filter("header-compression")
        self.stack = contextlib.ExitStack()
        self.table_bytes, self.concurrency = table_bytes, concurrency
        with contextlib.ExitStack() as stack:
            self.origin = origin or stack.enter_context(contextlib.closing(Origin(plain_answer)))
            self.ground_file = ground_bootstrap(self.origin.port, ground, table_bytes)
            self.ground = stack.enter_context(contextlib.closing(Envoy(self.ground_file, concurrency)))
            self.tap = stack.enter_context(contextlib.closing(Tap(self.ground.port)))
            self.remote_file = remote_bootstrap(self.tap.port, remote, table_bytes)
            self.remote = stack.enter_context(contextlib.closing(Envoy(self.remote_file, concurrency)))
            self.stack = stack.pop_all()

    def connect(self, source: str = "127.0.0.1") -> Client:
        return Client(self.remote.port, source)

    def restart_ground(self) -> None:
        self.ground.close()
        self.ground = self.stack.enter_context(contextlib.closing(Envoy(self.ground_file, self.concurrency)))
        self.tap.ground_port = self.ground.port

    def restart_remote(self) -> None:
        self.remote.close()
        self.remote = self.stack.enter_context(contextlib.closing(Envoy(self.remote_file, self.concurrency)))

    def wait_for_the_end_of_the_pipe(self) -> None:
        active = "/stats?filter=cluster.pipe.upstream_cx_active"
        wait_for("the end of the pipe", lambda: "active: 0" in self.remote.admin(active))

    def close(self) -> None:
        self.stack.close()
