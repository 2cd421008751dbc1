"""The health endpoint for load balancers, and the name of a box among others with the same file."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.boxes.desk import ANSWER, WWW, Desk, desk_in, is_taken
from harness.boxes.pep import Pep, command, write_config
from harness.clients.commands import Curl
from harness.host.ports import free_ports
from harness.host.waiting import wait_for
from harness.net.authority import Authority

WAIT_S = 3.0


@dataclass
class Endpoint:
    """The health endpoint of a box, as a balancer asks it."""

    folder: Path
    port: int

    def ask(self, path: str, *options: str) -> tuple[int, str]:
        """Returns status and text. A status of 0 means that nobody listens."""
        answer = Curl(self.folder).get(f"http://127.0.0.1:{self.port}{path}", *options)
        return answer.status, answer.body.decode()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_in(tmp_path_factory.mktemp("health")) as desk:
        yield desk


def test_a_box_is_ready_until_it_drains_and_knows_its_own_requests(desk: Desk, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    endpoint = Endpoint(tmp_path, port)
    changes = {"listen": {**desk.config["listen"], "health": f"127.0.0.1:{port}"}, "drain": {"wait": f"{WAIT_S:g}s"}}
    other = tmp_path / "other"
    assert command("render", desk.write(**changes, id="ship-2"), "--out", other).returncode == 0
    with Pep(desk.write(**changes, id="ship-1"), tmp_path) as pep:
        for options in ((), ("-H", "Host: balancer.example"), ("-0", "-H", "Host:")):
            assert endpoint.ask("/ready", *options) == (200, "ok\n")
        assert endpoint.ask("/live") == (200, "ok\n")
        assert endpoint.ask("/")[0] == 404
        assert endpoint.ask("/ready", "--request", "POST")[0] == 405

        own, others = cdn_id(pep.state / "rendered"), cdn_id(other)
        assert own != others
        assert "ship" not in own
        url = f"http://127.0.0.1:{desk.http}{ANSWER}"
        assert Curl(tmp_path).get(url, "-H", f"Host: {WWW}", "-H", f"CDN-Loop: {others}").status == 200
        assert Curl(tmp_path).get(url, "-H", f"Host: {WWW}", "-H", f"CDN-Loop: {own}").status >= 400

        pep.quit_envoy()
        wait_for("a box that is not ready", lambda: endpoint.ask("/ready") == (503, "Envoy does not respond\n"))
        wait_for("a box that is ready again", lambda: endpoint.ask("/ready")[0] == 200)

        began = time.monotonic()
        pep.child.process.send_signal(signal.SIGTERM)
        wait_for("a box that drains", lambda: endpoint.ask("/ready") == (503, "this box drains before its end\n"))
        assert endpoint.ask("/live")[0] == 200
        assert desk.get(), "a balancer that has not noticed yet is served"
        wait_for("a closed listener", lambda: not is_taken(desk.http))
        assert time.monotonic() - began >= WAIT_S
        assert pep.child.process.wait(10) == 0, pep.output()
        assert time.monotonic() - began < WAIT_S + 5.0


def test_a_remote_without_its_ground_is_alive_and_not_ready(desk: Desk, tmp_path: Path) -> None:
    port, ground = free_ports(2)
    endpoint = Endpoint(tmp_path, port)
    authority = Authority(tmp_path)
    identity = authority.issue("remote.example")
    config = {
        "role": "remote", "link": desk.config["link"], "proxy": desk.config["proxy"],
        "listen": {**desk.config["listen"], "dns": "off", "health": f"127.0.0.1:{port}", "status": "off"},
        "split": {"peer": f"127.0.0.2:{ground}", **identity.as_dict(), "ca": str(authority.files.cert)},
    }  # fmt: skip
    with Pep(write_config(tmp_path, config), tmp_path):
        wait_for("the reason", lambda: endpoint.ask("/ready") == (503, "the ground does not respond\n"))
        assert endpoint.ask("/live") == (200, "ok\n")


def cdn_id(rendered: Path) -> str:
    """Returns the token in `CDN-Loop` of a rendered tree."""
    text = "".join(path.read_text() for path in rendered.rglob("*.yaml"))
    found = set(re.findall(r'cdn_id: "([^"]+)"', text))
    assert len(found) == 1, found
    return found.pop()
