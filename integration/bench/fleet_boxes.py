"""A part of `make bench ONLY=fleet`: boxes that end, change and follow one another, on loopback."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.boxes.desk import ANSWER, IMG, WWW, Desk, desk_in
from harness.boxes.pep import STEERED, Pep, write_config
from harness.clients.commands import Curl
from harness.host.artifacts import Missing, built, need_commands, need_root
from harness.host.ports import free_ports
from harness.host.processes import Child
from harness.host.waiting import Timeout, wait_for
from harness.net.authority import Authority
from harness.results.figures import at_most

TARGETS = [
    at_most("drain_broken_responses", 0),
    at_most("config_in_force_s", 2),
    at_most("reload_lost_requests", 0),
    at_most("zombies", 0),
    at_most("false_loops", 0),
]
Figures = dict[str, float | None]

DOWNLOADS = 50
PIECES = 16
SLOW = f"/_/answer?body=noise&size={PIECES}000&chunk=1000&pause=500&header=cache-control:no-store"
"""A download of eight seconds."""
SWAPS = 20
ORPHANS = 20
OWN = "pep.example.org"


@dataclass
class Load:
    """Requests without end, and the failures among them."""

    fetch: Callable[[], str | None]
    sent: int = 0
    failed: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[Load]:
        """Sends about 10 requests a second."""

        def go() -> None:
            while not self._stop.wait(0.1):
                self.sent += 1
                if problem := self.fetch():
                    self.failed.append(problem)

        thread = threading.Thread(target=go)
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join(60)


def get(folder: Path, url: str, size: int | None = None) -> str | None:
    """Fetches a page of the site, of `size` bytes if that is given. Returns the problem, if there is one."""
    answer = Curl(folder).get(url, "-H", f"Host: {WWW}")
    whole = size is None or len(answer.body) == size
    return None if answer.status == 200 and whole else f"{answer.status} {len(answer.body)} bytes {answer.problem}"


def box(desk: Desk, folder: Path, name: str, **changes: Any) -> tuple[Path, int, int]:
    """Writes the file of another box for the same site, with ports of its own. Returns it with its http and health
    ports."""
    http, dns, metrics, health = free_ports(4)
    listen = {
        "http": f"127.0.0.1:{http}", "tls": "off", "dns": f"127.0.0.1:{dns}",
        "metrics": f"127.0.0.1:{metrics}", "health": f"127.0.0.1:{health}", "status": "off", "intercept": "none",
    }  # fmt: skip
    home = folder / name
    home.mkdir()
    cache = {"dir": str(home / "cache"), "size": "64mib"}
    config = {**desk.config, "id": name, "listen": listen, "cache": cache, **changes}
    return write_config(home, config, ["example.org"]), http, health


def balancer(folder: Path, port: int, boxes: Sequence[tuple[int, int]]) -> Child:
    """Envoy as a balancer: round robin over the boxes that `/ready` shows to be ready."""

    def address(number: int) -> dict[str, Any]:
        return {"socket_address": {"address": "127.0.0.1", "port_value": number}}

    endpoints = [
        {"endpoint": {"address": address(http), "health_check_config": {"port_value": health}}}
        for http, health in boxes
    ]
    kind = "type.googleapis.com/envoy.extensions.filters"
    manager = {
        "@type": f"{kind}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "balancer",
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all", "domains": ["*"],
                    "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "boxes", "timeout": "0s"}}],
                }
            ]
        },
        "http_filters": [{"name": "router", "typed_config": {"@type": f"{kind}.http.router.v3.Router"}}],
    }  # fmt: skip
    check = {
        "timeout": "1s", "interval": "0.5s", "no_traffic_interval": "0.5s", "unhealthy_threshold": 1,
        "healthy_threshold": 1, "http_health_check": {"path": "/ready"},
    }  # fmt: skip
    cluster = {
        "name": "boxes", "type": "STATIC", "lb_policy": "ROUND_ROBIN", "connect_timeout": "1s",
        "health_checks": [check],
        "load_assignment": {"cluster_name": "boxes", "endpoints": [{"lb_endpoints": endpoints}]},
    }  # fmt: skip
    filters = [{"name": "http", "typed_config": manager}]
    listener = {"name": "in", "address": address(port), "filter_chains": [{"filters": filters}]}
    file = folder / "balancer.json"
    file.write_text(json.dumps({"static_resources": {"listeners": [listener], "clusters": [cluster]}}))
    line = [built("envoy"), "-c", file, "--use-dynamic-base-id", "-l", "error", "--concurrency", "1"]
    return Child(line, folder / "balancer.log")


def drain(folder: Path) -> Figures:
    """Ends one of two boxes behind a balancer while downloads and requests pass it."""
    with ExitStack() as stack:
        desk = stack.enter_context(desk_in(folder))
        (port,) = free_ports(1)
        files = [box(desk, folder, name, drain={"wait": "3s", "time": "60s"}) for name in ("one", "two")]
        peps = [stack.enter_context(Pep(file, file.parent)) for file, _, _ in files]
        stack.enter_context(balancer(folder, port, [(http, health) for _, http, health in files]))
        url = f"http://127.0.0.1:{port}"
        wait_for("the balancer", lambda: get(folder, url + ANSWER) is None)
        problems: list[str] = []

        def download() -> None:
            if problem := get(folder, url + SLOW, PIECES * 1000):
                problems.append(problem)

        threads = [threading.Thread(target=download) for _ in range(DOWNLOADS)]
        load = stack.enter_context(Load(lambda: get(folder, url + ANSWER)).running())
        for thread in threads:
            thread.start()
        time.sleep(2)
        began = time.monotonic()
        peps[0].child.process.send_signal(signal.SIGTERM)
        ended = peps[0].child.process.wait(90)
        took = time.monotonic() - began
        for thread in threads:
            thread.join(60)
        assert ended == 0, peps[0].output()
        for problem in [*problems, *load.failed]:
            print(f"  broken: {problem}")
        print(f"  {DOWNLOADS} downloads and {load.sent} requests; the box ended after {took:.1f} s")
        return {"drain_broken_responses": len(problems) + len(load.failed)}


class Mount:
    """A folder that is written as a kubelet writes a ConfigMap: a new folder, and a rename of the link `..data`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._count = 0
        path.mkdir()

    def write(self, files: dict[str, bytes]) -> float:
        """Writes all files. Returns the time of the rename."""
        self._count += 1
        folder = self.path / f"..{self._count:04}"
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
            link = self.path / name
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}")
        (self.path / "..data_tmp").symlink_to(folder.name)
        (self.path / "..data_tmp").rename(self.path / "..data")
        return time.monotonic()


def swaps(folder: Path) -> Figures:
    """Swaps the file, a list and a certificate under load, as a kubelet does. `dns.reload` is a second."""
    with ExitStack() as stack:
        desk = stack.enter_context(desk_in(folder))
        (tls,) = free_ports(1)
        authority = Authority(folder)
        mount = Mount(folder / "mount")
        level, names = "safe", ["example.org"]
        pair = authority.issue(OWN)

        def files() -> dict[str, bytes]:
            config = {
                **desk.config, "dns": {"domains": [STEERED], "reload": "1s"},
                "rewrite": {"level": level, "target": "http"},
                "listen": {**desk.config["listen"], "tls": f"127.0.0.1:{tls}", "status": "off"},
                "proxy": {**desk.config["proxy"], "secure_names": [OWN]},
                "tls": {"terminate": [{"names": [OWN], "cert": "own.pem", "key": "own.key"}]},
            }  # fmt: skip
            lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in config.items())
            return {
                "longhaul.yaml": lines.encode(), STEERED: "\n".join(names).encode(),
                "own.pem": pair.cert.read_bytes(), "own.key": pair.key.read_bytes(),
            }  # fmt: skip

        def file_is_in_force() -> bool:
            return (desk.moved in desk.get()) == (level == "safe")

        def list_is_in_force() -> bool:
            line = ["dig", "+short", "@127.0.0.1", "-p", str(desk.dns), IMG]
            first = subprocess.run(line, capture_output=True, text=True, check=False).stdout.split()[:1]
            return (first == ["127.0.0.1"]) == ("example.org" in names)

        def certificate_is_in_force() -> bool:
            context = ssl.create_default_context(cafile=str(authority.files.cert))
            with socket_to(tls) as plain, context.wrap_socket(plain, server_hostname=OWN) as stream:
                shown = ssl.DER_cert_to_PEM_cert(stream.getpeercert(binary_form=True) or b"")
            return shown.split() == pair.cert.read_text().split()[: len(shown.split())]

        mount.write(files())
        stack.enter_context(Pep(mount.path / "longhaul.yaml", folder))
        for check in (file_is_in_force, list_is_in_force, certificate_is_in_force):
            wait_for(check.__name__, check)
        load = Load(lambda: get(folder, f"http://127.0.0.1:{desk.http}{ANSWER}"))
        times: dict[str, list[float]] = {"file": [], "list": [], "certificate": []}
        with load.running():
            for number in range(SWAPS):
                kind = list(times)[number % 3]
                if kind == "file":
                    level = "off" if level == "safe" else "safe"
                elif kind == "list":
                    names = [WWW.replace("www", "=www")] if names == ["example.org"] else ["example.org"]
                else:
                    pair = authority.issue(OWN)
                began = mount.write(files())
                checks = {"file": file_is_in_force, "list": list_is_in_force, "certificate": certificate_is_in_force}
                wait_for(f"the {kind}", checks[kind])
                times[kind].append(time.monotonic() - began)
        for kind, taken in times.items():
            print(f"  {kind}: {', '.join(f'{one:.2f}' for one in taken)} s")
        print(f"  {load.sent} requests, {len(load.failed)} lost: {load.failed[:3]}")
        return {"config_in_force_s": max(map(max, times.values())), "reload_lost_requests": len(load.failed)}


def socket_to(port: int) -> socket.socket:
    """Opens a connection on loopback."""
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def zombies(folder: Path) -> Figures:
    """Leaves orphans to a box that is process 1 of its namespace."""
    need_root()
    need_commands("unshare", "nsenter")
    with ExitStack() as stack:
        desk = stack.enter_context(desk_in(folder))
        file = desk.write(listen={**desk.config["listen"], "status": "off"})
        line = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", built("longhaul"), "run", file]
        child = stack.enter_context(Child([*line, "--state", folder / "state"], folder / "longhaul.log"))
        child.wait_for_output("ready", 120)
        (init,) = children(child.process.pid)
        before = len(children(init))
        made = f"for i in $(seq {ORPHANS}); do (sleep 0.5 &); done"
        enter = ["nsenter", "--target", str(init), "--pid", "--mount", "sh", "-c", made]
        subprocess.run(enter, check=True)
        wait_for("the orphans", lambda: len(children(init)) == before + ORPHANS, timeout_s=5)
        time.sleep(0.5)
        with suppress(Timeout):
            wait_for("their end", lambda: len(children(init)) == before, timeout_s=3)
        return {"zombies": len(children(init)) - before}


def children(pid: int) -> list[int]:
    """Returns the children of a process."""
    lists = [task / "children" for task in Path(f"/proc/{pid}/task").iterdir()]
    return [int(one) for text in lists for one in text.read_text().split()]


def loops(folder: Path) -> Figures:
    """Sends requests through two boxes that differ by `id` and sockets, and then in a circle, which is refused."""
    with ExitStack() as stack:
        desk = stack.enter_context(desk_in(folder))
        last, http, _ = box(desk, folder, "last")
        upstream = {**desk.config["upstream"], "map": {WWW: f"127.0.0.1:{http}"}}
        first, entry, _ = box(desk, folder, "first", upstream=upstream)
        stack.enter_context(Pep(last, last.parent))
        stack.enter_context(Pep(first, first.parent))
        url = f"http://127.0.0.1:{entry}{ANSWER}"
        refused = [problem for number in range(20) if (problem := get(folder, f"{url}&header=x-n:{number}"))]
        circle = {**desk.config["upstream"], "map": {WWW: f"127.0.0.1:{entry}"}}
        text = last.read_text().splitlines()
        text = [f"upstream: {json.dumps(circle)}" if line.startswith("upstream:") else line for line in text]
        last.write_text("\n".join(text) + "\n")
        wait_for("the refusal of a circle", lambda: get(folder, f"{url}&header=x-n:{time.monotonic()}") is not None)
        print(f"  refused: {refused[:1]}")
        return {"false_loops": len(refused)}


MEASURES = (drain, swaps, zombies, loops)


def measure(folder: Path) -> dict[str, float | None]:
    """Returns the figures of `TARGETS`."""
    figures: Figures = {}
    for one in MEASURES:
        home = folder / one.__name__
        home.mkdir()
        # One measure needs root. The others do not depend on it.
        with suppress(Missing):
            figures |= one(home)
    return figures
