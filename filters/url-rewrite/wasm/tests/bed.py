"""A real Envoy with the filter in it, and an origin that sends exactly the response that a test sets.

Everything is on loopback, on ports that the kernel chose. Every process is stopped by its own handle.
"""

import contextlib
import json
import re
import select
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(REPOSITORY / "integration"))

from harness.filters import envoy_and_filter  # noqa: E402 - the path is set above
from harness.host_calls import of_url_rewrite  # noqa: E402 - the path is set above

DEADLINE_S = 20.0
ENVOY_ARGUMENTS = ["--concurrency", "1", "--disable-hot-restart", "-l", "warning"]

CONFIG = {
    "targets": {"https": [], "http": ["198.51.100.12:8080"]},
    "own": ["198.51.100.12:8080", "pep.example.net"],
    "level": "safe",
    "exclude": ["bank.example"],
    "ports": [80, 443, 8080],
}


def wait_for(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: timed out after {DEADLINE_S} s")
        time.sleep(0.01)


# ---------------------------------------------------------------------------------------------------------- origin


@dataclass
class Request:
    """A request that arrived at the origin."""

    line: str
    headers: list[tuple[str, str]]

    def get(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass
class Answer:
    """The origin's response: pieces of raw bytes, each sent at once, with pauses between them."""

    pieces: list[bytes]
    pause_s: float = 0.0
    gates: list[threading.Event] = field(default_factory=list)


class Origin:
    """An HTTP/1.1 origin that sends one response, set by the test, for every request. It records the requests."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answer = Answer([ok(b"")])
        self.upgraded = threading.Event()
        origin = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(ConnectionError):
                    while origin.serve(self.rfile, self.wfile):
                        pass

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 64

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def serve(self, reader, writer) -> bool:
        line = reader.readline().decode("latin-1").strip()
        if not line:
            return False
        headers: list[tuple[str, str]] = []
        while (raw := reader.readline().decode("latin-1").strip()) != "":
            name, _, value = raw.partition(":")
            headers.append((name, value.strip()))
        request = Request(line, headers)
        body = int(request.get("content-length") or 0)
        reader.read(body)
        self.requests.append(request)
        # The client may have all of it, and its test may end, before this thread is done. By then `self.answer` is the
        # next test's. A `connection: close` in that one would close a connection that Envoy keeps open.
        answer = self.answer
        for index, piece in enumerate(answer.pieces):
            if index and answer.pause_s:
                time.sleep(answer.pause_s)
            if index and index <= len(answer.gates):
                answer.gates[index - 1].wait(DEADLINE_S)
            writer.write(piece)
            writer.flush()
        if request.get("upgrade"):
            # After the upgrade the origin echoes.
            while data := reader.read1(4096):
                writer.write(data)
                writer.flush()
            return False
        return b"connection: close" not in answer.pieces[0].lower()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def head(status: str, *headers: str) -> bytes:
    return "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *headers, "")).encode("latin-1")


def ok(body: bytes, *headers: str, kind: str = "text/html") -> bytes:
    return head("200 OK", f"content-type: {kind}", f"content-length: {len(body)}", *headers) + body


def chunked(pieces: list[bytes], *headers: str, kind: str = "text/html") -> list[bytes]:
    """Returns the head, and then each piece as its own chunk, to be sent one by one."""
    chunks = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces]
    return [head("200 OK", f"content-type: {kind}", "transfer-encoding: chunked", *headers), *chunks, b"0\r\n\r\n"]


# ----------------------------------------------------------------------------------------------------------- envoy


@dataclass
class Response:
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    complete: bool = True

    def get(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name]


class Envoy:
    """Envoy with the filter, one worker, in front of one origin."""

    def __init__(self, origin: Origin, config: dict | str = CONFIG, wasm: Path | None = None) -> None:
        envoy, shipped = envoy_and_filter("url-rewrite")
        self.folder = Path(tempfile.mkdtemp(prefix="longhaul-url-rewrite-"))
        bootstrap = self.folder / "envoy.json"
        bootstrap.write_text(json.dumps(self.bootstrap(origin.port, config, wasm or shipped)), encoding="utf-8")
        self.log = self.folder / "envoy.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [envoy, "-c", bootstrap, "--admin-address-path", self.folder / "admin.txt", *ENVOY_ARGUMENTS],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
            )
        try:
            admin_file = self.folder / "admin.txt"
            self.wait_for(lambda: admin_file.exists() and ":" in admin_file.read_text(), "Envoy's admin")
            self.admin_port = int(admin_file.read_text().rsplit(":", 1)[1])
            self.wait_for(lambda: self.admin("/ready").startswith("LIVE"), "Envoy to be ready")
            [port] = re.findall(r"127\.0\.0\.1:(\d+)", self.admin("/listeners"))
            self.port = int(port)
        except BaseException:
            self.close()
            raise

    def bootstrap(self, origin_port: int, config: dict | str, wasm: Path) -> dict:
        def typed(kind: str, **rest: object) -> dict:
            return {"@type": f"type.googleapis.com/{kind}", **rest}

        def address(port: int) -> dict:
            return {"socket_address": {"address": "127.0.0.1", "port_value": port}}

        extensions = "envoy.extensions"
        filters = [
            {
                "name": "url-rewrite",
                "typed_config": typed(
                    f"{extensions}.filters.http.wasm.v3.Wasm",
                    config={
                        "name": "url-rewrite",
                        "capability_restriction_config": {"allowed_capabilities": of_url_rewrite()},
                        "failure_policy": "FAIL_RELOAD",
                        "reload_config": {"backoff": {"base_interval": "0.01s", "max_interval": "1s"}},
                        "configuration": typed(
                            "google.protobuf.StringValue",
                            value=config if isinstance(config, str) else json.dumps(config),
                        ),
                        "vm_config": {
                            "vm_id": "url-rewrite",
                            "runtime": "envoy.wasm.runtime.v8",
                            "code": {"local": {"filename": str(wasm)}},
                        },
                    },
                ),
            },
            {"name": "router", "typed_config": typed(f"{extensions}.filters.http.router.v3.Router")},
        ]
        manager = typed(
            f"{extensions}.filters.network.http_connection_manager.v3.HttpConnectionManager",
            stat_prefix="test",
            http_protocol_options={"accept_http_10": True, "enable_trailers": True},
            upgrade_configs=[{"upgrade_type": "websocket"}],
            route_config={
                "virtual_hosts": [
                    {
                        "name": "all",
                        "domains": ["*"],
                        "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "origin", "timeout": "0s"}}],
                    }
                ]
            },
            http_filters=filters,
        )
        return {
            "admin": {"address": address(0)},
            "static_resources": {
                "listeners": [
                    {
                        "name": "test",
                        "address": address(0),
                        "per_connection_buffer_limit_bytes": 32768,
                        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
                    }
                ],
                "clusters": [
                    {
                        "name": "origin",
                        "type": "STATIC",
                        "per_connection_buffer_limit_bytes": 32768,
                        "load_assignment": {
                            "cluster_name": "origin",
                            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(origin_port)}}]}],
                        },
                        "typed_extension_protocol_options": {
                            f"{extensions}.upstreams.http.v3.HttpProtocolOptions": typed(
                                f"{extensions}.upstreams.http.v3.HttpProtocolOptions",
                                explicit_http_config={"http_protocol_options": {"enable_trailers": True}},
                            )
                        },
                    }
                ],
            },
        }

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Waits for a condition that only a running Envoy meets. The error shows the log if Envoy has ended."""
        wait_for(lambda: self.process.poll() is not None or condition(), what)
        if self.process.poll() is not None:
            raise AssertionError(f"Envoy did not start:\n{self.log.read_text()[-3000:]}")

    def admin(self, path: str) -> str:
        try:
            with socket.create_connection(("127.0.0.1", self.admin_port), timeout=DEADLINE_S) as connection:
                connection.sendall(f"GET {path} HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n".encode())
                return read_response(connection).body.decode()
        except (ConnectionError, TimeoutError):
            return ""

    def metric(self, name: str) -> int:
        found = re.search(rf"^wasmcustom\.longhaul_url_rewrite_{name}: (\d+)$", self.admin("/stats"), re.M)
        return int(found.group(1)) if found else 0

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_S)

    def get(self, host: str, path: str = "/", *headers: str, method: str = "GET", version: str = "1.1") -> Response:
        with self.connect() as connection:
            lines = [f"{method} {path} HTTP/{version}", f"host: {host}", "connection: close", *headers, "", ""]
            connection.sendall("\r\n".join(lines).encode("latin-1"))
            return read_response(connection, is_head=method == "HEAD")

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def read_response(connection: socket.socket, is_head: bool = False) -> Response:
    """Reads one whole response. `complete` says whether its end matched its headers."""
    raw = b""
    while b"\r\n\r\n" not in raw:
        piece = connection.recv(65536)
        if not piece:
            return Response(0, [], raw, complete=False)
        raw += piece
    start, _, rest = raw.partition(b"\r\n\r\n")
    first, *lines = start.decode("latin-1").split("\r\n")
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    response = Response(int(first.split()[1]), headers, b"")
    if is_head or response.status in (101, 204, 304):
        response.body = rest
        return response
    with contextlib.suppress(ConnectionError):
        while not is_whole(response, rest) and (piece := connection.recv(65536)):
            rest += piece
    if response.get("transfer-encoding") == "chunked":
        response.body, response.complete = unchunk(rest)
    else:
        response.body = rest
        announced = response.get("content-length")
        response.complete = announced is None or len(rest) == int(announced)
    return response


def is_whole(response: Response, body: bytes) -> bool:
    """Returns whether the announced end has arrived. Without an announced length, only the end of the connection shows
    it."""
    if length := response.get("content-length"):
        return len(body) >= int(length)
    return response.get("transfer-encoding") == "chunked" and body.endswith(b"0\r\n\r\n")


def unchunk(raw: bytes) -> tuple[bytes, bool]:
    body = b""
    while True:
        size, found, raw = raw.partition(b"\r\n")
        if not found:
            return body, False
        length = int(size, 16)
        if length == 0:
            return body, True
        if len(raw) < length + 2:
            return body + raw[:length], False
        body, raw = body + raw[:length], raw[length + 2 :]


def arrivals(connection: socket.socket, pieces: int) -> Iterator[bytes]:
    """Yields decoded chunks as they arrive, without waiting for the next."""
    reader = connection.makefile("rb")
    while reader.readline() not in (b"\r\n", b""):
        pass
    for _ in range(pieces):
        size = int(reader.readline().strip() or b"0", 16)
        piece = reader.read(size)
        reader.readline()
        yield piece


def is_quiet(connection: socket.socket, for_s: float) -> bool:
    """Returns whether nothing arrives for a while."""
    return not select.select([connection], [], [], for_s)[0]
