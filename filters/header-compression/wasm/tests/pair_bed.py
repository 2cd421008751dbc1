"""Two real Envoys, a tap on the pipe between them, an origin behind and raw clients in front.

Everything is on loopback, on ports that the kernel chose. Every process is stopped by its own handle.
"""

import contextlib
import json
import re
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(REPOSITORY / "integration"))

from harness.filters import envoy_and_filter  # noqa: E402 - the path is set above

DEADLINE_S = 30.0
PREFACE_BYTES = 24
FRAME_HEAD_BYTES = 9
HEADERS, CONTINUATION = 1, 9
# With the filter, a larger table would only make the index of constant fields longer (README.md, Configuration).
TABLE_BYTES_PACKED = 4096
TABLE_BYTES_PEER = 65536

# Every call between Envoy and the filter that the filter needs. Fewer callbacks are fewer calls into the VM.
CAPABILITIES = [
    *("proxy_on_context_create", "proxy_on_vm_start", "proxy_on_configure", "proxy_on_delete"),
    *("proxy_on_request_headers", "proxy_on_response_headers", "proxy_on_memory_allocate"),
    *("proxy_get_buffer_bytes", "proxy_get_header_map_pairs", "proxy_set_header_map_pairs", "proxy_get_property"),
    *("proxy_send_local_response", "proxy_define_metric", "proxy_increment_metric", "proxy_log"),
    *("environ_get", "environ_sizes_get", "clock_time_get", "random_get", "fd_write", "proc_exit"),
]


def wait_for(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: timed out after {DEADLINE_S} s")
        time.sleep(0.01)


# ------------------------------------------------------------------------------------------------- messages as bytes

Fields = list[tuple[bytes, bytes]]


@dataclass
class Message:
    """A request or response of HTTP/1.1 as it was sent."""

    line: bytes
    fields: Fields
    body: bytes = b""

    def all(self, name: bytes) -> list[bytes]:
        return [value for known, value in self.fields if known.lower() == name]

    @property
    def status(self) -> int:
        return int(self.line.split(b" ")[1])


def read_message(reader, *, bodiless: bool = False) -> Message | None:
    """Returns the next message of a connection, or None at its end."""
    line = reader.readline().rstrip(b"\r\n")
    if not line:
        return None
    message = Message(line, [])
    while (raw := reader.readline().rstrip(b"\r\n")) != b"":
        name, _, value = raw.partition(b":")
        message.fields.append((name, value.strip(b" \t")))
    is_response = line.startswith(b"HTTP/")
    if bodiless or (is_response and message.status in (204, 304)) or (is_response and message.status < 200):
        return message
    if b"chunked" in b",".join(message.all(b"transfer-encoding")).lower():
        while size := int(reader.readline().split(b";")[0], 16):
            message.body += reader.read(size)
            reader.readline()
        reader.readline()
    elif length := message.all(b"content-length"):
        message.body = reader.read(int(length[0]))
    return message


def read_response(reader, *, bodiless: bool = False) -> Message:
    """Returns the next response of a connection. Raises ConnectionError at its end."""
    response = read_message(reader, bodiless=bodiless)
    if response is None:
        raise ConnectionError("closed without a response")
    return response


def write_message(line: bytes, fields: Fields, body: bytes = b"") -> bytes:
    return b"".join([line, b"\r\n", *(name + b": " + value + b"\r\n" for name, value in fields), b"\r\n", body])


class Connection:
    """A client's connection to the remote."""

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S, source_address=(source, 0))
        self.reader = self.socket.makefile("rb")

    def ask(self, method: bytes, host: bytes, path: bytes, fields: Fields | None = None, body: bytes = b"") -> Message:
        length = [(b"content-length", b"%d" % len(body))] if body else []
        line = b" ".join([method, path, b"HTTP/1.1"])
        self.socket.sendall(write_message(line, [(b"host", host), *(fields or []), *length], body))
        return read_response(self.reader, bodiless=method == b"HEAD")

    def close(self) -> None:
        self.reader.close()
        self.socket.close()


# ------------------------------------------------------------------------------------------------------------ origin


def plain_answer(_: Message) -> bytes:
    return write_message(b"HTTP/1.1 200 OK", [(b"content-length", b"2"), (b"x-origin", b"yes")], b"ok")


class Origin:
    """An HTTP/1.1 origin that sends the response of the function `answer`, and records every request."""

    def __init__(self, answer: Callable[[Message], bytes] = plain_answer) -> None:
        self.requests: list[Message] = []
        self.answer = answer
        origin = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(ConnectionError):
                    while request := read_message(self.rfile):
                        origin.requests.append(request)
                        self.wfile.write(origin.answer(request))
                        if request.all(b"upgrade"):
                            while data := self.rfile.read1(4096):
                                self.wfile.write(data)
                            return

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 128

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


# --------------------------------------------------------------------------------------------------------------- tap


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


# ------------------------------------------------------------------------------------------------------------- envoy


def typed(kind: str, **rest: object) -> dict:
    return {"@type": f"type.googleapis.com/{kind}", **rest}


def address(port: int) -> dict:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def cluster(name: str, port: int, options: dict) -> dict:
    kind = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    return {
        "name": name,
        "type": "STATIC",
        "circuit_breakers": {"thresholds": [{"max_retries": 1000}]},
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(port)}}]}],
        },
        "typed_extension_protocol_options": {kind: typed(kind, **options)},
    }


def wasm_filter(wasm: Path, config: dict | str) -> dict:
    value = config if isinstance(config, str) else json.dumps(config)
    return {
        "name": "header-compression",
        "typed_config": typed(
            "envoy.extensions.filters.http.wasm.v3.Wasm",
            config={
                "name": "header-compression",
                "capability_restriction_config": {"allowed_capabilities": {name: {} for name in CAPABILITIES}},
                "failure_policy": "FAIL_RELOAD",
                "reload_config": {"backoff": {"base_interval": "0.01s", "max_interval": "1s"}},
                "configuration": typed("google.protobuf.StringValue", value=value),
                "vm_config": {
                    "vm_id": "header-compression",
                    "runtime": "envoy.wasm.runtime.v8",
                    "code": {"local": {"filename": str(wasm)}},
                },
            },
        ),
    }


def bootstrap(name: str, manager: dict, route: dict, filters: list[dict], upstream: dict) -> dict:
    routes = [{"match": {"prefix": "/"}, "route": {"cluster": upstream["name"], "timeout": "0s", **route}}]
    # A ground resolves every name except `-`, which no client requests.
    nobody = [{"match": {"prefix": "/"}, "direct_response": {"status": 503}}]
    router = typed("envoy.extensions.filters.http.router.v3.Router", suppress_envoy_headers=True)
    manager = typed(
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=name,
        generate_request_id=False,
        server_header_transformation="PASS_THROUGH",
        stream_idle_timeout="0s",
        upgrade_configs=[{"upgrade_type": "websocket"}],
        route_config={
            "virtual_hosts": [
                {"name": "nobody", "domains": ["-"], "routes": nobody},
                {"name": "all", "domains": ["*"], "routes": routes},
            ]
        },
        http_filters=[*filters, {"name": "router", "typed_config": router}],
        **manager,
    )
    return {
        "node": {"id": name, "cluster": name},
        "admin": {"address": address(0)},
        "static_resources": {
            "listeners": [
                {
                    "name": name,
                    "address": address(0),
                    "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
                }
            ],
            "clusters": [upstream],
        },
    }


def ground_bootstrap(origin_port: int, config: dict | str | None, wasm: Path, table_bytes: int) -> dict:
    """The ground: HTTP/2 in, the filter first of all, HTTP/1.1 to the origin."""
    options = {"hpack_table_size": table_bytes, "allow_connect": True}
    filters = [] if config is None else [wasm_filter(wasm, config)]
    origin = cluster("origin", origin_port, {"explicit_http_config": {"http_protocol_options": {}}})
    return bootstrap("ground", {"codec_type": "HTTP2", "http2_protocol_options": options}, {}, filters, origin)


def remote_bootstrap(pipe_port: int, config: dict | str | None, wasm: Path, table_bytes: int) -> dict:
    """The remote: HTTP/1.1 in, HTTP/2 out, the filter in the pipe's cluster, and the retry that it requires."""
    http2 = {"hpack_table_size": table_bytes, "allow_connect": True}
    options: dict = {"explicit_http_config": {"http2_protocol_options": http2}}
    if config is not None:
        codec = typed("envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec")
        options["http_filters"] = [wasm_filter(wasm, config), {"name": "codec", "typed_config": codec}]
    retry = {
        "retry_on": "retriable-headers",
        "num_retries": 2,
        "retriable_headers": [{"name": "x-longhaul-retry", "present_match": True}],
        "retry_back_off": {"base_interval": "0.001s", "max_interval": "0.002s"},
    }
    pipe = cluster("pipe", pipe_port, options)
    return bootstrap("remote", {}, {"retry_policy": retry}, [], pipe)


class Envoy:
    """One Envoy."""

    def __init__(self, configuration: dict, concurrency: int = 1) -> None:
        envoy, _ = envoy_and_filter("header-compression")
        self.folder = Path(tempfile.mkdtemp(prefix="longhaul-header-compression-"))
        file, self.log = self.folder / "envoy.json", self.folder / "envoy.log"
        file.write_text(json.dumps(configuration), encoding="utf-8")
        arguments = ["--concurrency", str(concurrency), "--disable-hot-restart", "-l", "warning"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [envoy, "-c", file, "--admin-address-path", self.folder / "admin.txt", *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
            )
        try:
            admin = self.folder / "admin.txt"
            self.wait_for(lambda: admin.exists() and ":" in admin.read_text(), "Envoy's admin")
            self.admin_port = int(admin.read_text().rsplit(":", 1)[1])
            self.wait_for(lambda: self.admin("/ready").startswith("LIVE"), "Envoy to be ready")
            [port] = re.findall(r"127\.0\.0\.1:(\d+)", self.admin("/listeners"))
            self.port = int(port)
        except BaseException:
            self.close()
            raise

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        wait_for(lambda: self.process.poll() is not None or condition(), what)
        if self.process.poll() is not None:
            raise AssertionError(f"Envoy did not start:\n{self.log.read_text()[-3000:]}")

    def admin(self, path: str) -> str:
        with contextlib.suppress(ConnectionError, TimeoutError):
            connection = Connection(self.admin_port)
            try:
                return connection.ask(b"GET", b"admin", path.encode()).body.decode()
            finally:
                connection.close()
        return ""

    def counters(self) -> dict[str, int]:
        """Returns the filter's counters by name, without their prefix."""
        pattern = re.compile(r"^wasmcustom\.longhaul_header_compression_(\w+): (\d+)$", re.M)
        return {name: int(value) for name, value in pattern.findall(self.admin("/stats?filter=header_compression"))}

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


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
        _, self.wasm = envoy_and_filter("header-compression")
        self.stack = contextlib.ExitStack()
        self.table_bytes, self.concurrency = table_bytes, concurrency
        with contextlib.ExitStack() as stack:
            self.origin = origin or stack.enter_context(contextlib.closing(Origin()))
            self.ground_file = ground_bootstrap(self.origin.port, ground, self.wasm, table_bytes)
            self.ground = stack.enter_context(contextlib.closing(Envoy(self.ground_file, concurrency)))
            self.tap = stack.enter_context(contextlib.closing(Tap(self.ground.port)))
            self.remote_file = remote_bootstrap(self.tap.port, remote, self.wasm, table_bytes)
            self.remote = stack.enter_context(contextlib.closing(Envoy(self.remote_file, concurrency)))
            self.stack = stack.pop_all()

    def connect(self, source: str = "127.0.0.1") -> Connection:
        return Connection(self.remote.port, source)

    def restart_ground(self) -> None:
        self.ground.close()
        self.ground = self.stack.enter_context(contextlib.closing(Envoy(self.ground_file, self.concurrency)))
        self.tap.ground_port = self.ground.port

    def restart_remote(self) -> None:
        self.remote.close()
        self.remote = self.stack.enter_context(contextlib.closing(Envoy(self.remote_file, self.concurrency)))

    def wait_for_the_end_of_the_pipe(self) -> None:
        active = "/stats?filter=cluster.pipe.upstream_cx_active"
        wait_for(lambda: "active: 0" in self.remote.admin(active), "the end of the pipe")

    def close(self) -> None:
        self.stack.close()
