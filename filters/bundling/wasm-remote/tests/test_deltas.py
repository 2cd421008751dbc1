"""The remote's bundling filter in Envoy, before a ground that lies: lost bases and pages that are not the ground's."""

import contextlib
import hashlib
import http.client
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import brotli

REPOSITORY = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(REPOSITORY / "integration"))

from harness.filters import envoy_and_filter  # noqa: E402 - the path is set above

DEADLINE_S = 60.0
FIRST = b"<!doctype html><title>first</title>" + b"<p>a line of the site" * 99
SECOND = b"<!doctype html><title>second</title>" + b"<p>a line of the site" * 99
HOST = "www.site.test"


def capabilities() -> list[str]:
    """Returns the calls that a rendered configuration allows the filter."""
    of_filter = (REPOSITORY / "envoy-config/src/render/filters/bundling.rs").read_text(encoding="utf-8")
    of_all = (REPOSITORY / "envoy-config/src/render/filters/wasm.rs").read_text(encoding="utf-8")
    return re.findall(r'"(proxy_\w+|environ_\w+|clock_\w+|random_get|fd_write|proc_exit)"', of_filter + of_all)


class Ground(BaseHTTPRequestHandler):
    """A ground that names bases which nobody has, or sends other pages than it says."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[tuple[str, str | None, str | None]]] = []

    def do_GET(self) -> None:
        """Sends the response of the path."""
        base = self.headers.get("x-longhaul-base")
        self.asked.append((self.path, self.headers.get("x-longhaul-takes"), base))
        if self.path == "/first":
            self.reply(FIRST, ("x-longhaul-base", "keep"))
        elif self.path == "/mismatch":
            name = hashlib.sha256(FIRST).hexdigest()[:48]
            # A higher quality refers to brotli's own dictionary, which stands behind the base.
            delta = brotli.compress(SECOND, quality=1) + bytes(24)
            self.reply(delta, ("x-longhaul-base", name), ("content-encoding", "x-longhaul-br"))
        elif base:
            self.reply(b"junk" * 9999, ("x-longhaul-base", "7" * 48), ("content-encoding", "x-longhaul-br"))
        elif self.path.startswith("/plain"):
            self.reply(SECOND, ("set-cookie", "a=1"), ("set-cookie", "b=2"))
        elif self.path == "/br":
            self.reply(brotli.compress(SECOND), ("content-encoding", "br"), ("etag", '"x"'))
        else:
            self.close_connection = True

    def reply(self, body: bytes, *fields: tuple[str, str]) -> None:
        """Sends a page."""
        self.send_response(200)
        for name, value in (("content-type", "text/html"), ("content-length", str(len(body))), *fields):
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


class Remote:
    """An Envoy with the filter of a remote."""

    def __init__(self, ground_port: int) -> None:
        envoy, wasm = envoy_and_filter("bundling-remote")
        self.folder = Path(tempfile.mkdtemp(prefix="lh-bundling-"))
        config = self.folder / "envoy.json"
        config.write_text(json.dumps(bootstrap(ground_port, wasm)), encoding="utf-8")
        self.log = self.folder / "envoy.log"
        with self.log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [envoy, "--config-path", config, "--use-dynamic-base-id", "--concurrency", "1",
                 "--admin-address-path", self.folder / "admin.txt", "--log-level", "warning"],
                stdout=log, stderr=subprocess.STDOUT, cwd=self.folder,
            )  # fmt: skip
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
        """Waits for a condition that only a running Envoy meets."""
        end = time.monotonic() + DEADLINE_S
        while not condition():
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"timed out waiting for {what}:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.02)

    def admin(self, path: str) -> str:
        """Returns a page of Envoy's admin interface."""
        try:
            return self.ask(self.admin_port, path)[2].decode()
        except OSError:
            return ""

    def metric(self, name: str) -> int:
        """Returns a counter of the filter."""
        found = re.search(rf"^wasmcustom\.longhaul_bundling_{name}: (\d+)$", self.admin("/stats"), re.M)
        return int(found[1]) if found else 0

    def ask(self, port: int, path: str) -> tuple[int, list[tuple[str, str]], bytes]:
        """Sends a GET as a browser loads a page."""
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
        try:
            client.request("GET", path, headers={"Host": HOST, "Accept": "text/html,*/*;q=0.8"})
            answer = client.getresponse()
            return answer.status, [(name.lower(), value) for name, value in answer.getheaders()], answer.read()
        finally:
            client.close()

    def get(self, path: str) -> tuple[int, list[tuple[str, str]], bytes]:
        """Loads a page through the filter."""
        return self.ask(self.port, path)

    def close(self) -> None:
        """Ends Envoy."""
        self.process.terminate()
        self.process.wait(DEADLINE_S)
        shutil.rmtree(self.folder, ignore_errors=True)


def bootstrap(ground_port: int, wasm: Path) -> dict:
    """Returns Envoy's configuration."""

    def typed(kind: str, **rest: object) -> dict:
        return {"@type": f"type.googleapis.com/{kind}", **rest}

    def address(port: int) -> dict:
        return {"socket_address": {"address": "127.0.0.1", "port_value": port}}

    extensions = "envoy.extensions"
    link = {"rtt_ms": 600, "down": 99999, "up": 99999}
    own = json.dumps({"role": "remote", "cluster": "pipe", **link, "flights": False, "deltas": True})
    plugin = {
        "name": "bundling",
        "capability_restriction_config": {"allowed_capabilities": {name: {} for name in capabilities()}},
        "configuration": typed("google.protobuf.StringValue", value=own),
        "vm_config": {
            "vm_id": "bundling",
            "runtime": "envoy.wasm.runtime.v8",
            "code": {"local": {"filename": str(wasm)}},
        },
    }
    routes = [{"match": {"prefix": "/"}, "route": {"cluster": "pipe", "timeout": "0s"}}]
    manager = typed(
        f"{extensions}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="test",
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
        http_filters=[
            {"name": "bundling", "typed_config": typed(f"{extensions}.filters.http.wasm.v3.Wasm", config=plugin)},
            {"name": "router", "typed_config": typed(f"{extensions}.filters.http.router.v3.Router")},
        ],
    )
    endpoint = {"endpoint": {"address": address(ground_port)}}
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
                    "name": "pipe",
                    "type": "STATIC",
                    "load_assignment": {"cluster_name": "pipe", "endpoints": [{"lb_endpoints": [endpoint]}]},
                }
            ],
        },
    }


class TestDeltas(unittest.TestCase):
    """Pages after the first one of a site."""

    @classmethod
    def setUpClass(cls) -> None:
        """Starts both ends, and loads the page that becomes the base."""
        cls.ground = ThreadingHTTPServer(("127.0.0.1", 0), Ground)
        cls.addClassCleanup(cls.ground.server_close)
        cls.addClassCleanup(cls.ground.shutdown)
        threading.Thread(target=cls.ground.serve_forever, daemon=True).start()
        cls.remote = Remote(cls.ground.server_address[1])
        cls.addClassCleanup(cls.remote.close)
        status, fields, body = cls.remote.get("/first")
        assert (status, body) == (200, FIRST), (status, body)
        assert not [name for name, _ in fields if name.startswith("x-longhaul")], fields
        assert Ground.asked == [("/first", "br, delta", None)], Ground.asked

    def asked(self, path: str) -> list[tuple[str, str | None, str | None]]:
        """Returns the requests for a path that the ground has seen."""
        return [one for one in Ground.asked if one[0] == path]

    def test_a_page_whose_base_is_lost_is_requested_once_more_and_arrives(self) -> None:
        short = hashlib.sha256(FIRST).hexdigest()[:16]
        for path in ("/plain", "/br"):
            lost = self.remote.metric("base_lost_total")
            status, fields, body = self.remote.get(path)
            self.assertEqual((status, body), (200, SECOND))
            self.assertEqual(self.asked(path), [(path, "br, delta", short), (path, "br", None)])
            self.assertEqual(self.remote.metric("base_lost_total"), lost + 1)
            names = [name for name, _ in fields]
            self.assertFalse([name for name in names if name.startswith("x-longhaul") or name == "content-encoding"])
            self.assertEqual(names.count("content-length"), 1)
            self.assertIn(("content-type", "text/html"), fields)
            if path == "/plain":
                self.assertEqual([value for name, value in fields if name == "set-cookie"], ["a=1", "b=2"])
            else:
                self.assertIn(("etag", 'W/"x"'), fields)

    def test_a_page_that_does_not_come_at_all_is_an_error_and_the_next_one_arrives(self) -> None:
        self.assertEqual(self.remote.get("/gone")[0], 503)
        self.assertEqual(self.remote.get("/plain?after")[2], SECOND)

    def test_a_page_that_is_not_the_grounds_is_cut_and_counted(self) -> None:
        before = self.remote.metric("broken_total_reason_mismatch")
        with self.assertRaises((http.client.IncompleteRead, ConnectionError)):
            self.remote.get("/mismatch")
        self.assertEqual(self.remote.metric("broken_total_reason_mismatch"), before + 1)


if __name__ == "__main__":
    unittest.main()
