"""`cache.parent`: objects come from a real Squid or Apache Traffic Server, and pages are rewritten anyway."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.boxes.desk import Desk
from harness.boxes.pep import Pep, command, write_config
from harness.clients.commands import Curl
from harness.host.artifacts import need_commands, need_root
from harness.host.ports import free_ports
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.origins.name_server import NameServer, Response

WWW, IMG = "www.example.org", "img.example.org"
KEPT = "/kept.png?size=30000"


@dataclass
class Parent:
    """The way to start one caching proxy on a loopback port, with all its files below a folder."""

    program: str
    configure: Callable[[Path, int, Mapping[str, str]], tuple[list[str], dict[str, str]]]
    """Takes a folder, a port, and the origins' sockets by name. Returns a command line and its environment."""


def squid(folder: Path, port: int, origins: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Squid in the foreground with one worker and a cache in memory. Each origin is a peer, so it needs no resolver."""
    peers = []
    for number, (name, where) in enumerate(origins.items()):
        address, _, at = where.partition(":")
        peers += [
            f"cache_peer {address} parent {at} 0 no-query originserver name=origin{number}",
            f"acl origin{number} dstdomain {name}",
            f"cache_peer_access origin{number} allow origin{number}",
        ]
    lines = [
        f"http_port 127.0.0.1:{port}", f"pid_filename {folder}/squid.pid", "access_log none", "cache_store_log none",
        f"cache_log {folder}/cache.log", f"coredump_dir {folder}", "cache_mem 16 MB", "never_direct allow all",
        "http_access allow localhost", "http_access deny all", "shutdown_lifetime 0 seconds", "netdb_filename none",
        "visible_hostname parent.example.org", "pinger_enable off", *peers,
    ]  # fmt: skip
    (folder / "squid.conf").write_text("\n".join(lines) + "\n")
    # Two instances with the same name would share their memory.
    return ["squid", "-N", "-n", f"parent{port}", "-f", f"{folder}/squid.conf"], {}


def traffic_server(folder: Path, port: int, origins: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """A forward proxy with a small cache on disk. Origins are remapped to their sockets, as in `upstream.map`."""
    layout = {name: folder / name for name in ("sysconf", "runtime", "log", "cache")}
    for path in layout.values():
        path.mkdir()
    plugins = "/usr/lib/trafficserver/modules"
    (folder / "runroot.yaml").write_text(
        f"prefix: {folder}\nexec_prefix: /usr\nbindir: /usr/bin\nsbindir: /usr/sbin\nsysconfdir: {layout['sysconf']}\n"
        f"datadir: {layout['cache']}\nlibexecdir: {plugins}\nlocalstatedir: {folder}\nruntimedir: {layout['runtime']}\n"
        f"logdir: {layout['log']}\ncachedir: {layout['cache']}\n"
    )
    etc = layout["sysconf"]
    (etc / "records.config").write_text(
        f"CONFIG proxy.config.http.server_ports STRING {port}:ip-in=127.0.0.1\n"
        "CONFIG proxy.config.url_remap.remap_required INT 1\n"
        "CONFIG proxy.config.url_remap.pristine_host_hdr INT 1\n"
        "CONFIG proxy.config.http.cache.required_headers INT 0\n"
        "CONFIG proxy.config.admin.user_id STRING trafficserver\n"
        "CONFIG proxy.config.diags.logfile.filename STRING stderr\n"
    )
    (etc / "storage.config").write_text(f"{layout['cache']} 64M\n")
    ports = {name: at.rpartition(":")[2] for name, at in origins.items()}
    (etc / "remap.config").write_text(
        "".join(
            f"map http://{name}/ http://{at}/\nmap http://{name}:{ports[name]}/ http://{at}/\n"
            for name, at in origins.items()
        )
    )
    (etc / "ip_allow.yaml").write_text(
        "ip_allow:\n- apply: in\n  ip_addrs: 127.0.0.1\n  action: allow\n  methods: ALL\n"
    )
    for empty in ("plugin.config", "parent.config", "hosting.config", "volume.config", "cache.config"):
        (etc / empty).write_text("")
    return ["traffic_server", f"--run-root={folder}/runroot.yaml"], {"TS_RUNROOT": f"{folder}/runroot.yaml"}


PARENTS = {"squid": Parent("squid", squid), "traffic_server": Parent("traffic_server", traffic_server)}


@dataclass
class Family:
    """Longhaul with its caching parent."""

    desk: Desk
    pep: Pep
    parent: Child

    def get(self, target: str, host: str, *options: str) -> tuple[int, bytes]:
        """Sends a request through Longhaul."""
        got = Curl(self.desk.folder).get(f"http://127.0.0.1:{self.desk.http}{target}", "-H", f"Host: {host}", *options)
        return got.status, got.body


@pytest.fixture(params=PARENTS)
def family(request: pytest.FixtureRequest, desk: Desk) -> Iterator[Family]:
    need_commands(PARENTS[request.param].program)
    (port,) = free_ports(1)
    child = start(request.param, desk.folder / "parent", port, desk.config["upstream"]["map"])
    try:
        # A mapped name bypasses every parent. DNS resolves these names, and the URL gives the port.
        origin = int(desk.config["upstream"]["map"][IMG].rpartition(":")[2])
        upstream = {**desk.config["upstream"], "map": {}, "ports": [80, origin]}
        config = desk.write(cache={"parent": f"127.0.0.1:{port}"}, upstream=upstream)
        with Pep(config, desk.folder) as pep:
            yield Family(desk, pep, child)
    finally:
        child.stop()


def own(folder: Path, user: str) -> None:
    """Both programs drop root. Gives their user the files that they write, and access to the folders above."""
    if os.geteuid() != 0:
        return
    entry = pwd.getpwnam(user)
    for path in [folder, *folder.rglob("*")]:
        shutil.chown(path, entry.pw_uid, entry.pw_gid)
    for above in folder.parents:
        if above == Path("/tmp"):
            break
        if above.owner() == "root" and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o011)


def test_the_second_request_is_a_hit_of_the_parent_and_pages_are_rewritten(family: Family) -> None:
    origins = family.desk.origins
    origins.forget()
    first, second = (family.get(KEPT, IMG) for _ in range(2))
    assert first == second
    assert (first[0], len(first[1]) > 1000) == (200, True)
    assert len(origins.requests(host=IMG)) == 1, "the parent kept it"
    status, page = family.get(f"/_/answer?host={IMG}", WWW)
    assert status == 200
    assert family.desk.moved in page
    moved = f"/{IMG}{KEPT}"
    assert family.get(moved, f"127.0.0.1:{family.desk.http}") == first, "a moved URL finds the same object"
    assert len(origins.requests(host=IMG)) == 1


def test_what_one_client_may_have_never_enters_a_parent(family: Family) -> None:
    # The origin's own port, because requests past the parent really reach it there.
    host = f"{IMG}:{family.desk.config['upstream']['map'][IMG].rpartition(':')[2]}"
    for number, credential in enumerate(("Cookie: u=alice", "Authorization: Basic YTpi")):
        path = f"/mine{number}.png?size=3000"

        def asked(path: str = path) -> int:
            return sum(path in json.dumps(request) for request in family.desk.origins.requests())

        for count in (1, 2):
            assert family.get(path, host, "-H", credential)[0] == 200
            assert asked() == count, f"{credential}: each request reached the origin"
        for _ in range(2):
            assert family.get(path, host)[0] == 200
            assert asked() == 3, f"{credential}: the parent had no copy of it, and shares what anybody may have"


def start(name: str, folder: Path, port: int, origins: Mapping[str, str]) -> Child:
    """Starts a caching proxy that is called `name` on a port, and waits until it serves."""
    parent = PARENTS[name]
    folder.mkdir()
    line, environment = parent.configure(folder, port, origins)
    own(folder, "proxy" if parent.program == "squid" else "trafficserver")
    child = Child(line, folder.parent / f"{name}.log", env=environment, stop_timeout_s=10)
    try:
        probe = Curl(folder.parent, None, "--proxy", f"http://127.0.0.1:{port}")
        wait_for(f"{name}: {child.output()}", lambda: probe.get(f"http://{IMG}/ready.png").status == 200, 40, 0.3)
    except BaseException:
        child.stop()
        raise
    return child


def test_a_dead_parent_is_answered_for_with_the_reason(family: Family) -> None:
    assert family.get(KEPT, IMG)[0] == 200
    family.parent.stop()
    status, body = family.get("/other.png", IMG)
    assert status == 502
    assert b"no connection to" in body
    assert "starting it again" not in family.pep.output()


def longhaul_node(folder: Path, port: int, config: Mapping[str, Any]) -> Pep:
    """A Longhaul whose cache serves others: it rewrites nothing, and no client is sent to it."""
    folder.mkdir()
    listen = {
        "http": f"127.0.0.1:{port}", "tls": "off", "dns": "off", "intercept": "none",
        "status": "off",
    }  # fmt: skip
    cache = {"dir": str(folder / "cache"), "size": "64mib"}
    node = {**config, "listen": listen, "rewrite": {"level": "off"}, "dns": {}, "cache": cache}
    return Pep(write_config(folder, node), folder)


def test_squid_traffic_server_and_longhaul_are_nodes_of_one_ring(desk: Desk) -> None:
    need_commands(*(parent.program for parent in PARENTS.values()))
    upstream = desk.config["upstream"]
    ports = free_ports(3)
    with ExitStack() as stack:
        nodes = {}
        for name, port in zip(PARENTS, ports[1:], strict=True):
            nodes[name] = start(name, desk.folder / name, port, upstream["map"])
            stack.callback(nodes[name].stop)
        stack.enter_context(longhaul_node(desk.folder / "node", ports[0], desk.config))
        parents = [f"127.0.0.1:{port}" for port in ports]
        config = desk.write(cache={"parent": parents}, upstream={**upstream, "map": {}})
        pep = stack.enter_context(Pep(config, desk.folder))
        curl = Curl(desk.folder)

        def statuses(count: int) -> set[int]:
            at = f"http://127.0.0.1:{desk.http}/ring"
            return {curl.get(f"{at}/{number}.png?size=300", "-H", f"Host: {IMG}").status for number in range(count)}

        def of_nodes(gauge: str) -> list[float]:
            """Returns the values of a gauge in the order of `parents`."""
            found = pep.metrics()
            label = 'envoy_cluster_name="parents",envoy_endpoint_address='
            return [found[f'envoy_cluster_endpoint_{gauge}{{{label}"{parent}"}}'] for parent in parents]

        wait_for("each node passes its health checks", lambda: of_nodes("healthy") == [1, 1, 1], 10)
        assert statuses(30) == {200}
        assert min(of_nodes("rq_total")) > 0

        def added() -> int:
            """Returns how many of the objects come from the origin."""
            before = len(desk.origins.requests(host=IMG))
            assert statuses(30) == {200}
            return len(desk.origins.requests(host=IMG)) - before

        wait_for("each object in the cache of its node", lambda: added() == 0)
        nodes["squid"].process.kill()
        assert statuses(30) == {200}
        wait_for("status shows the dead node", lambda: 0 in of_nodes("healthy"), 10)


def test_a_parent_given_by_name_is_refused_with_what_to_write(desk: Desk) -> None:
    done = command("check", desk.write(cache={"parent": "squid.example.net:3128"}))
    assert done.returncode == 2
    for part in ("cache.parent", "`squid.example.net` is a name", "write its address"):
        assert part in done.stderr


PUBLIC, PRIVATE = "127.78.0.1", "127.79.9.9"
"""The address of a name for Longhaul's query (the site), and for its parent's (a host that nobody may reach)."""
NAMESERVER = "127.79.0.53"
"""Squid sends its queries to port 53 only."""


class Rebinding:
    """The responses of a resolver that gives a public address to the first query for a name, and a private one from
    then on."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        self.rebound = 0

    def __call__(self, name: str, kind: str) -> Response:
        again = name in self.asked
        if kind == "A":
            self.rebound += again
            self.asked.add(name)
        return [PRIVATE if again else PUBLIC]


class Victim(threading.Thread):
    """A server on a private address that counts its clients."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.listener = socket.create_server((PRIVATE, port))
        self.came = 0

    def run(self) -> None:
        """Serves until a client sends a dot."""
        while True:
            client, _ = self.listener.accept()
            with client:
                said = client.recv(4096)
                if said == b".":
                    return
                self.came += 1
                client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret")

    def close(self) -> None:
        """Stops the thread."""
        with socket.create_connection(self.listener.getsockname()[:2]) as last:
            last.sendall(b".")
        self.join()
        self.listener.close()


def by_dns(program: str, folder: Path, port: int, access: str) -> tuple[list[str], dict[str, str]]:
    """A parent that finds origins by DNS. `access` is the access list that Longhaul renders, or empty."""
    if program == "squid":
        line, environment = squid(folder, port, {})
        lines = (folder / "squid.conf").read_text().replace("never_direct allow all\n", "")
        (folder / "squid.conf").write_text(f"dns_nameservers {NAMESERVER}\nhosts_file none\n{access}{lines}")
        return line, environment
    line, environment = traffic_server(folder, port, {})
    etc = folder / "sysconf"
    records = (etc / "records.config").read_text().replace("remap_required INT 1", "remap_required INT 0")
    (etc / "records.config").write_text(
        f"{records}CONFIG proxy.config.reverse_proxy.enabled INT 0\nCONFIG proxy.config.dns.resolv_conf STRING NULL\n"
        f"CONFIG proxy.config.dns.nameservers STRING {NAMESERVER}:53\n"
    )
    if access:
        incoming = (etc / "ip_allow.yaml").read_text().replace("ip_allow:\n", "")
        (etc / "ip_allow.yaml").write_text(access + incoming)
    return line, environment


@pytest.mark.parametrize("program", PARENTS)
@pytest.mark.parametrize("listed", [True, False], ids=["with the list", "without"])
def test_a_name_that_changes_its_address_leads_a_parent_with_the_list_to_no_private_one(
    desk: Desk, program: str, listed: bool
) -> None:
    need_commands(program)
    need_root()
    folder = desk.folder / "parent"
    folder.mkdir()
    port, origin = *free_ports(1), int(desk.config["upstream"]["map"][IMG].rpartition(":")[2])
    upstream = {**desk.config["upstream"], "map": {}, "resolvers": [f"{NAMESERVER}:53"], "ports": [80, origin]}
    config = desk.write(cache={"parent": f"127.0.0.1:{port}"}, upstream=upstream)
    checked = command("check", "--all", config)
    assert "needs an access list" in checked.stdout, checked
    assert command("render", config, "--out", desk.folder / "rendered").returncode == 0
    name = {"squid": "squid.conf", "traffic_server": "ip_allow.yaml"}[program]
    access = (desk.folder / "rendered" / "parent" / name).read_text() if listed else ""
    line, environment = by_dns(program, folder, port, access)
    own(folder, "proxy" if program == "squid" else "trafficserver")
    rebinding, victim = Rebinding(), Victim(origin)
    victim.start()
    with (
        closing(victim),
        NameServer(rebinding, address=NAMESERVER, port=53, ttl=0),
        Child(line, desk.folder / "parent.log", env=environment, stop_timeout_s=10) as child,
    ):
        curl = Curl(desk.folder)
        proxied = Curl(desk.folder, None, "--proxy", f"http://127.0.0.1:{port}")
        wait_for(f"{program}: {child.output()}", lambda: proxied.get(f"http://{PUBLIC}:{origin}/").status != 0, 40, 0.3)
        with Pep(config, desk.folder):
            for number in range(30 if listed else 5):
                host = f"r{number}.rebind.test:{origin}"
                answer = curl.get(f"http://127.0.0.1:{desk.http}/", "-H", f"Host: {host}")
                assert (b"secret" in answer.body) != listed, answer
        assert rebinding.rebound > 0, "the parent asked, and was told of the private address"
        assert (victim.came == 0) == listed
