"""The recipes of deploy/fleet: their own files, in namespaces that have their addresses, with traffic."""

from __future__ import annotations

import json
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.boxes.fleet import Fleet, enter, fleet, get, kill
from harness.boxes.grounds import accepts
from harness.boxes.pep import Pep, command
from harness.clients.commands import Curl
from harness.host.artifacts import REPOSITORY, built, need_commands
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.net.authority import Authority, issue_as_written
from harness.net.namespaces import Namespace, veth

RECIPES = REPOSITORY / "deploy" / "fleet"
SHARED = "198.51.100.12"
EDGES = {"edge-1": "192.0.2.21", "edge-2": "192.0.2.22"}
HEALTH = 9902


@pytest.fixture
def boxes(root_bed: None, folder: Path) -> Iterator[Fleet]:  # noqa: ARG001 - order of set-up
    with fleet(folder) as running:
        yield running


def recipe(boxes: Fleet, name: str, box: str, file: str = "longhaul.yaml") -> Path:
    """Copies a recipe for one box. The folder of the cache is below the test's. Returns its configuration."""
    home = boxes.folder / box
    shutil.copytree(RECIPES / name, home)
    config = home / file
    text = config.read_text()
    assert "cache: off" not in text
    if "/var/cache/longhaul" in text:
        config.write_text(text.replace("/var/cache/longhaul", str(home / "cache")).replace("100gib", "64mib"))
    elif "cache:" not in text and "role: edge" in text:
        config.write_text(f"{text}cache: {{ dir: {home}/cache }}\n")
    return config


def ask(boxes: Fleet, address: str, path: str) -> str:
    """Sends one GET from the clients. Returns its problem, or nothing."""
    problems: list[str] = []

    def go() -> None:
        enter(boxes.clients)
        problems.append(get(address, path))

    thread = threading.Thread(target=go)
    thread.start()
    thread.join()
    return problems[0]


def served(pep: Pep, mark: str) -> int:
    """Returns the number of requests of a mark that a box has served."""
    return sum(one.get("path", "").startswith(f"/{mark}-") for one in pep.requests())


def start_edges(boxes: Fleet) -> tuple[dict[str, Pep], Child]:
    """Starts both edges and the balancer on the router."""
    peps = {}
    for name, address in EDGES.items():
        inside = boxes.box(name, address, SHARED)
        peps[name] = boxes.run(inside, recipe(boxes, "two-edges", name))
    script = RECIPES / "two-edges" / "balance.sh"
    line = boxes.router.inside([script, SHARED, *EDGES.values()])
    balancer = boxes._stack.enter_context(Child(line, boxes.folder / "balance.log"))
    balancer.wait_for_output(f"2 of 2 edges serve {SHARED}")
    return peps, balancer


@pytest.mark.long
def test_two_edges_with_one_address_share_the_load_and_an_upgrade_of_both_loses_no_request(boxes: Fleet) -> None:
    peps, balancer = start_edges(boxes)
    load = boxes.load(SHARED, "both")
    load.until(60)
    wait_for("requests at both edges", lambda: all(served(pep, "both") > 10 for pep in peps.values()))

    # The script restarts a box by a command, which asks this test through a file.
    wish, restart = boxes.folder / "wish", boxes.folder / "restart.sh"
    restart.write_text(
        f'#!/bin/sh\necho "$1" > {wish}.new\nmv {wish}.new {wish}\nwhile [ -e {wish} ]; do sleep 0.1; done\n'
    )
    restart.chmod(0o755)
    endpoints = [f"{address}:{HEALTH}" for address in EDGES.values()]
    line = boxes.router.inside([RECIPES / "upgrade.sh", *endpoints])
    with Child(line, boxes.folder / "upgrade.log", env={"RESTART": str(restart)}) as upgrade:
        for pep, endpoint in zip(peps.values(), endpoints, strict=True):
            wait_for("a wish", wish.exists, timeout_s=60)
            assert wish.read_text().strip() == endpoint
            pep.child.process.terminate()
            assert pep.child.process.wait(60) == 0
            pep.__enter__()
            wish.unlink()
        assert upgrade.process.wait(60) == 0, upgrade.output()
    wait_for("both edges again", lambda: balancer.output().splitlines()[-1].startswith("2 of 2"), timeout_s=30)
    load.until(60)
    load.stop()
    assert load.failures == []
    # Each edge left the balancer once, and came back. The first may come back in the second in which the other leaves.
    numbers = [line.split()[0] for line in balancer.output().splitlines()]
    assert (numbers[0], numbers[-1], numbers.count("1")) == ("2", "2", 2), numbers


STAND_IN = """
import sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
name, ready = sys.argv[1], Path(sys.argv[2])
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path != '/ready' or ready.exists() else 503)
        self.end_headers()
        for _ in range(30 if self.path == '/slow' else 1):
            self.wfile.write(name.encode())
            time.sleep(0.1 if self.path == '/slow' else 0)
for port in (80, 9902):
    threading.Thread(target=ThreadingHTTPServer(('0.0.0.0', port), Handler).serve_forever).start()
print('ready', flush=True)
"""
"""Serves its name, and for three seconds at /slow. It is ready while a file exists."""


def test_a_connection_keeps_its_edge_and_new_ones_go_to_edges_that_are_ready(boxes: Fleet) -> None:
    files = {name: boxes.folder / name for name in EDGES}
    with ExitStack() as stack:
        for name, address in EDGES.items():
            files[name].touch()
            line = boxes.box(name, address, SHARED).inside([sys.executable, "-c", STAND_IN, name, files[name]])
            stack.enter_context(Child(line, boxes.folder / f"{name}.log")).wait_for_output("ready")
        script = [RECIPES / "two-edges" / "balance.sh", SHARED]
        line = boxes.router.inside([*script, *EDGES.values()])
        balancer = stack.enter_context(Child(line, boxes.folder / "balance.log"))
        balancer.wait_for_output(f"2 of 2 edges serve {SHARED}")
        curl = Curl(boxes.folder, boxes.clients)

        def names(count: int) -> set[str]:
            return {curl.get(f"http://{SHARED}/").body.decode() for _ in range(count)}

        assert wait_for("both edges", lambda: names(10) == set(EDGES) and set(EDGES)) == set(EDGES)
        slow: list[bytes] = []
        downloads = [
            threading.Thread(target=lambda: slow.append(curl.get(f"http://{SHARED}/slow").body)) for _ in range(6)
        ]
        for download in downloads:
            download.start()
        files["edge-1"].unlink()
        wait_for("one edge", lambda: f"1 of 2 edges serve {SHARED}" in balancer.output(), interval_s=0.1)
        assert names(10) == {"edge-2"}
        for download in downloads:
            download.join()
        assert sorted({len(body) for body in slow}) == [30 * len("edge-1")]
        files["edge-2"].unlink()
        files["edge-1"].touch()
        assert wait_for("the other edge", lambda: names(3) == {"edge-1"}, interval_s=0.2)
    boxes.router.run(script[0], "--undo")
    assert "longhaul_fleet" not in boxes.router.run("nft", "list", "tables").stdout
    assert "fwmark" not in boxes.router.run("ip", "rule").stdout


def test_keepalived_asks_the_health_endpoint_of_the_edge() -> None:
    conf = (RECIPES / "two-edges" / "keepalived.conf").read_text()
    config = (RECIPES / "two-edges" / "longhaul.yaml").read_text()
    assert f"http://127.0.0.1:{HEALTH}/ready" in conf
    assert f'health: "0.0.0.0:{HEALTH}"' in config
    [shared] = re.findall(r"^ +([\d.]+)/32$", conf, re.MULTILINE)
    assert f"addresses: [{shared}]" in config


@pytest.mark.long
def test_keepalived_moves_the_address_to_an_edge_that_is_ready(root_bed: None, folder: Path) -> None:  # noqa: ARG001 - order of set-up
    need_commands("keepalived")
    conf = (RECIPES / "two-edges" / "keepalived.conf").read_text()
    confs = {"edge-1": conf, "edge-2": conf.replace("priority 100", "priority 90")}
    assert confs["edge-1"] != confs["edge-2"]
    files = {name: folder / name for name in EDGES}
    with ExitStack() as stack:
        lan, clients = (stack.enter_context(Namespace(name)) for name in ("lan", "clients"))
        lan.ip("link", "add", "lan", "type", "bridge")
        lan.ip("link", "set", "lan", "up")

        def plug(inside: Namespace, name: str, address: str) -> None:
            veth(inside, "lan0", lan, name)
            lan.ip("link", "set", name, "master", "lan")
            inside.ip("address", "add", f"{address}/24", "dev", "lan0")

        plug(clients, "clients", "192.0.2.2")
        clients.ip("route", "add", f"{SHARED}/32", "dev", "lan0")
        for name, address in EDGES.items():
            files[name].touch()
            inside = stack.enter_context(Namespace(name))
            plug(inside, name, address)
            line = inside.inside([sys.executable, "-c", STAND_IN, name, files[name]])
            stack.enter_context(Child(line, folder / f"{name}.log")).wait_for_output("ready")
            file = folder / f"{name}.conf"
            file.write_text(confs[name])
            pids = [f"--pid={folder}/{name}.pid", f"--vrrp_pid={folder}/{name}.vrrp.pid"]
            line = inside.inside(["keepalived", "--vrrp", "--dont-fork", "--log-console", f"--use-file={file}", *pids])
            stack.enter_context(Child(line, folder / f"{name}-keepalived.log"))
        curl = Curl(folder, clients)

        def serves(name: str) -> bool:
            return curl.get(f"http://{SHARED}/", timeout_s=2).body == name.encode()

        wait_for("the first edge", lambda: serves("edge-1"), interval_s=0.2)
        files["edge-1"].unlink()
        wait_for("the second edge", lambda: serves("edge-2"), interval_s=0.2)
        files["edge-1"].touch()
        wait_for("the first edge again", lambda: serves("edge-1"), interval_s=0.2)


def start_pair(boxes: Fleet) -> tuple[Pep, list[Pep]]:
    """Starts both grounds and the ship."""
    authority = Authority(boxes.folder)
    names = {"ship": "ship.example", "ground-1": "198.51.100.21", "ground-2": "198.51.100.22"}
    peps = []
    for name in ("ground-1", "ground-2", "ship"):
        address = "192.0.2.11" if name == "ship" else names[name]
        config = recipe(boxes, "two-grounds", name, f"{name}.yaml")
        identity = authority.issue(names[name])
        for source, target in ((identity.cert, ".pem"), (identity.key, ".key")):
            shutil.copy(source, config.with_suffix(target))
        shutil.copy(authority.files.cert, config.parent / "ca.pem")
        peps.append(boxes.run(boxes.box(name, address), config))
    return peps[2], peps[:2]


@pytest.mark.long
def test_a_remote_with_two_grounds_loses_no_request_when_the_first_one_dies(boxes: Fleet) -> None:
    _, (first, second) = start_pair(boxes)
    wait_for("the pipe", lambda: not ask(boxes, "192.0.2.11", "/first.bin"), timeout_s=60)
    load = boxes.load("192.0.2.11", "ship")
    load.until(60)
    wait_for("the log of the first ground", lambda: served(first, "ship") >= 60)
    assert served(second, "ship") == 0
    kill(first)
    load.until(150)
    load.stop()
    assert load.failures == []
    wait_for("the log of the second ground", lambda: served(second, "ship") > 100)


@pytest.mark.long
def test_two_edges_share_a_ring_of_caches_and_lose_no_request_when_one_dies(boxes: Fleet) -> None:
    nodes = {f"node-{number}": f"192.0.2.3{number}" for number in (1, 2, 3)}
    caches = {}
    for name, address in nodes.items():
        config = recipe(boxes, "cache-ring", name, "node.yaml")
        config.write_text(config.read_text().replace("192.0.2.31", address))
        caches[name] = boxes.run(boxes.box(name, address), config)
    edges = {name: boxes.box(name, address) for name, address in EDGES.items()}
    peps = {name: boxes.run(inside, recipe(boxes, "cache-ring", name, "edge.yaml")) for name, inside in edges.items()}

    def up(name: str) -> int:
        line = [built("longhaul"), "status", "--state", peps[name].state, "--json"]
        report = json.loads(edges[name].run(*line, check=False).stdout)
        return sum(node["up"] for node in report["parents"])

    for name in edges:
        wait_for("all nodes", lambda name=name: up(name) == len(nodes), timeout_s=30)
    paths = [f"/url-{number}.bin" for number in range(60)]
    homes = []
    for address in EDGES.values():
        before = {name: served(pep, "url") for name, pep in caches.items()}
        assert [ask(boxes, address, path) for path in paths] == [""] * len(paths)
        # A node logs a request somewhat later.
        total = sum(before.values()) + len(paths)
        wait_for("the logs", lambda total=total: sum(served(pep, "url") for pep in caches.values()) >= total)
        homes.append({name: served(pep, "url") - before[name] for name, pep in caches.items()})
    # Both edges send each URL to the same node.
    assert homes[0] == homes[1]
    assert all(count > 0 for count in homes[0].values())
    load = boxes.load(EDGES["edge-1"], "ring")
    load.until(60)
    kill(caches["node-1"])
    wait_for("the dead node found", lambda: up("edge-1") == len(nodes) - 1, timeout_s=15)
    load.until(60)
    load.stop()
    assert load.failures == []


@pytest.mark.long
def test_two_hundred_remotes_stand_in_one_line_and_one_more_drains_nobody(boxes: Fleet) -> None:
    authority = Authority(boxes.folder)
    config = recipe(boxes, "many-remotes", "ground", "ground.yaml")
    identity = authority.issue("198.51.100.21")
    shutil.copy(identity.cert, config.with_name("ground.pem"))
    shutil.copy(identity.key, config.with_name("ground.key"))
    shutil.copy(authority.files.cert, config.with_name("ca.pem"))
    inside = boxes.box("ground", "198.51.100.21")
    ground = boxes.run(inside, config)

    def ships_in(*names: str) -> list[bool]:
        shown = [issue_as_written(boxes.folder / name, authority.files, name) for name in names]
        found: list[bool] = []

        def go() -> None:
            enter(boxes.clients)
            found.extend(accepts("198.51.100.21", 8443, one) for one in shown)

        thread = threading.Thread(target=go)
        thread.start()
        thread.join()
        return found

    def draining() -> str:
        return ground.admin("/stats?filter=total_filter_chains_draining")

    before = draining()
    assert ships_in(*(f"{number}.ships.example" for number in range(200))) == [True] * 200
    assert ships_in("guest.example", "a.b.ships.example", "ships.example") == [False] * 3
    remotes = config.with_name("remotes.txt")
    remotes.write_text(f"{remotes.read_text()}guest.example\n")
    wait_for("the 201st remote", lambda: ships_in("guest.example") == [True], timeout_s=30)
    assert draining() == before


def test_each_file_of_a_recipe_is_accepted(folder: Path) -> None:
    authority = Authority(folder)
    checked = 0
    for config in sorted(RECIPES.glob("*/*.yaml")):
        home = folder / config.parent.name
        shutil.copytree(config.parent, home, dirs_exist_ok=True)
        addresses = {"ground-1": "198.51.100.21", "ground-2": "198.51.100.22"}
        identity = authority.issue(addresses.get(config.stem, f"{config.stem}.example"))
        shutil.copy(identity.cert, home / f"{config.stem}.pem")
        shutil.copy(identity.key, home / f"{config.stem}.key")
        shutil.copy(authority.files.cert, home / "ca.pem")
        done = command("check", home / config.name)
        assert done.returncode == 0, done.stderr
        checked += 1
    assert checked == 7
