"""A newcomer's first minute: the demo as `make run` starts it, and every line that it proposes."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.clients.commands import Curl, dig
from harness.clients.moved import is_moved, put_back, true_url
from harness.host.artifacts import REPOSITORY, Missing, built, dist, need_commands
from harness.host.ports import is_open
from harness.host.processes import Child, is_running
from harness.host.waiting import wait_for
from harness.origins.pages import objects_of

SOCKETS = {"http": 8080, "dns": 1053, "metrics": 9153}
OWN = ("127.0.0.1:8080",)


@dataclass
class Demo:
    """The running demo."""

    child: Child
    curl: Curl
    said: str


def fresh_dist(folder: Path) -> Path:
    """Returns a folder with what `make run` builds in a fresh clone, and nothing else."""
    said = subprocess.run(["make", "-n", "run"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    words = {"envoy", *re.findall(r"[\w-]+", said)}
    (fresh := folder / "dist").mkdir()
    for one in dist().iterdir():
        if one.stem in words:
            shutil.copy(one, fresh)
    return fresh


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    need_commands("curl", "dig")
    for name in ("longhaul", "coredns", "url_rewrite.wasm", "envoy", "origins"):
        built(name)
    if taken := [port for port in SOCKETS.values() if is_open(port)]:
        raise Missing(f"ports {taken} are taken: is `make run` running?")
    folder = tmp_path_factory.mktemp("make-run")
    with Child(
        [sys.executable, "-u", REPOSITORY / "integration" / "demo" / "run_demo.py"],
        folder / "run.log",
        env={"XDG_RUNTIME_DIR": str(folder), "LONGHAUL_DIST": str(fresh_dist(folder))},
    ) as child:
        child.wait_for_output("Ctrl-C ends everything", timeout_s=120)
        yield Demo(child, Curl(folder), child.output())


def test_the_page_is_rewritten_and_every_moved_object_is_the_original(demo: Demo) -> None:
    answer = demo.curl.get("http://127.0.0.1:8080/", "-H", "Host: www.demo.test")
    site = REPOSITORY / "integration" / "site"
    markup = put_back(answer.body, OWN)
    original = (site / "www.demo.test" / "index.html").read_bytes()
    assert markup == original.replace(b'"//ads.demo.test', b'"http://ads.demo.test')
    moved = [one.url for one in objects_of(answer.body.decode(), "http://www.demo.test/") if is_moved(one.url, OWN)]
    assert len(moved) >= 10
    for url in moved:
        got = demo.curl.get(url)
        path = true_url(url, OWN).removeprefix("http://")
        assert (got.status, got.body) == (200, (site / path).read_bytes()), url


def test_a_listed_name_is_steered_and_leads_nowhere_else(demo: Demo) -> None:
    assert demo
    assert dig("www.demo.test", "A", "127.0.0.1", port=1053).addresses() == ["127.0.0.1", "127.77.0.1"]
    for kind in ("AAAA", "HTTPS"):
        answer = dig("www.demo.test", kind, "127.0.0.1", port=1053)
        assert (answer.status, answer.answer, [record[2] for record in answer.authority]) == ("NOERROR", [], ["SOA"])
        assert dig("www.demo.test", kind, "127.0.0.1", port=1054).answer, "the origin's own answer has the record"


def test_an_unlisted_name_is_untouched(demo: Demo) -> None:
    assert demo
    assert dig("unlisted.test", "A", "127.0.0.1", port=1053).addresses() == ["127.77.0.6"]


def test_every_command_it_says_to_try_works(demo: Demo, folder: Path) -> None:
    commands = re.findall(r"^    ((?:curl|dig) .*)$", demo.said, re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stdout.strip() or "-o" in shlex.split(command), command


def test_ctrl_c_leaves_nothing_running(demo: Demo) -> None:
    """This test is the last one, because it ends the module's demo."""
    session = demo.child.process.pid
    assert all(is_open(port) for port in SOCKETS.values())
    inside = descendants(session)
    assert len(inside) >= 4, "the demo, the origins, longhaul, Envoy and CoreDNS"
    assert demo.child.interrupt() == 0, demo.child.output()
    wait_for("all processes to end", lambda: not any(map(is_running, inside)))
    assert not any(is_open(port) for port in SOCKETS.values())
    assert not is_open(8081, "127.77.0.1")


def descendants(pid: int) -> set[int]:
    """Returns the process and all its descendants."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, queue = {pid}, [pid]
    while queue:
        below = children.get(queue.pop(), [])
        found.update(below)
        queue.extend(below)
    return found
