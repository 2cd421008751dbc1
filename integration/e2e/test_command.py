"""`longhaul run` as operators use it: the configurations that it refuses, its changes while it runs, and a clean
end."""

from __future__ import annotations

import http.client
import shutil
import socket
from collections.abc import Callable

import pytest

from harness.boxes.desk import ANSWER, WWW, Desk, is_taken
from harness.boxes.pep import Pep, command
from harness.clients.commands import dig
from harness.host.artifacts import built
from harness.host.waiting import wait_for

REFUSED: dict[str, tuple[Callable[[str], str], list[str]]] = {
    "an unknown key": (
        lambda text: text.replace("role: ", "roll: 1\nrole: ", 1),
        ["longhaul.yaml:1:1", "unknown key `roll`", "help:", "`role`"],
    ),
    "an unknown key further in": (
        lambda text: text.replace('"level"', '"lewel"'),
        ["longhaul.yaml:6:", "unknown key `rewrite.lewel`", "help:", "level`"],
    ),
    "a bad address": (
        lambda text: text.replace('"addresses": ["127.0.0.1"]', '"addresses": ["127.0.0.256"]'),
        ["longhaul.yaml:3:", "127.0.0.256", "expected an IP address"],
    ),
    "an allowlist that cannot be read": (
        lambda text: text.replace("steered.txt", "absent.txt"),
        ["longhaul.yaml:7:", "absent.txt", "No such file"],
    ),
    "two settings that contradict": (
        lambda text: text.replace('"target": "http"', '"target": "https"'),
        ["longhaul.yaml:6:", "rewrite.target", "proxy.secure_names"],
    ),
    "something that is not YAML": (lambda text: "}:{\n" + text, ["longhaul.yaml:1:"]),
}


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("act", ["check", "run"])
def test_a_bad_configuration_is_refused_with_its_place_and_what_was_expected(desk: Desk, what: str, act: str) -> None:
    path = desk.write()
    spoil, said = REFUSED[what]
    path.write_text(spoil(path.read_text()))
    state = desk.folder / "state"
    done = command(act, path, *(["--state", state] if act == "run" else []))
    assert done.returncode == 2
    for part in said:
        assert part in done.stderr
    assert done.stdout == ""
    assert not state.exists(), "nothing was changed"
    assert not is_taken(desk.http), "nothing was started"


def test_a_good_configuration_is_accepted_and_explained(desk: Desk) -> None:
    done = command("check", "--all", desk.write())
    assert done.returncode == 0, done.stderr
    assert "bandwidth-delay product" in done.stdout


@pytest.mark.parametrize(("key", "of"), [("listen.http", "http"), ("listen.dns", "dns"), ("listen.metrics", "metrics")])
def test_a_taken_port_is_named_with_the_key_that_sets_it(desk: Desk, key: str, of: str) -> None:
    port = getattr(desk, of)
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", port))
        holder.listen()
        done = command("run", desk.write(), "--state", desk.folder / "state")
    assert done.returncode == 1
    assert str(port) in done.stderr
    assert key in done.stderr
    assert not any(is_taken(other) for other in (desk.http, desk.dns, desk.metrics))


def test_ctrl_c_ends_everything_and_the_ports_are_free_again(desk: Desk) -> None:
    with Pep(desk.write(), desk.folder) as pep:
        assert desk.moved in desk.get()
        assert pep.child.interrupt() == 0, pep.output()
        for port in (desk.http, desk.dns, desk.metrics):
            assert not is_taken(port)


def test_a_change_of_the_file_reaches_new_requests_and_not_those_under_way(desk: Desk) -> None:
    with Pep(desk.write(), desk.folder) as pep:
        slow = _Slow(desk)
        desk.write(rewrite={"level": "off", "target": "http"})
        wait_for("the new level", lambda: desk.moved not in desk.get())
        body = slow.finish()
        # The page ends in the middle of its last object.
        assert body.count(desk.moved) >= 2 * body.count(b"<p>Object 0") - 2, "begun with rewriting, it ends with it"
        desk.write()
        wait_for("the old level", lambda: desk.moved in desk.get())
        assert pep.child.process.poll() is None


def test_the_filter_is_exchanged_while_requests_are_under_way(desk: Desk) -> None:
    """A filter in wasm. `test_reload.py` exchanges the native module, too."""
    module = desk.etc / "url_rewrite.wasm"
    shutil.copyfile(built("url_rewrite.wasm"), module)
    file = desk.write(engine="wasm")
    with Pep(file, desk.folder, environment={"LONGHAUL_URL_REWRITE": str(module)}) as pep:
        before = _filter_updates(pep)
        slow = _Slow(desk)
        # A custom section changes the file and its name, but not its behaviour.
        other = desk.etc / "other.wasm"
        other.write_bytes(module.read_bytes() + b"\x00\x06\x05other")
        other.replace(module)
        wait_for("the other filter", lambda: _filter_updates(pep) > before)
        assert desk.moved in desk.get()
        assert slow.finish().count(desk.moved) > 10


def test_a_refused_change_changes_nothing(desk: Desk) -> None:
    with Pep(desk.write(), desk.folder) as pep:
        good = desk.write().read_text()
        (desk.etc / "longhaul.yaml").write_text(good.replace("role: ", "roll: 1\nrole: ", 1))
        wait_for("the complaint", lambda: "roll" in pep.output())
        assert desk.moved in desk.get()
        assert dig(WWW, "A", "127.0.0.1", port=desk.dns).addresses()[0] == "127.0.0.1"


def test_a_name_added_to_the_allowlist_is_steered_without_a_restart(desk: Desk) -> None:
    with Pep(desk.write(), desk.folder):
        (desk.etc / "steered.txt").write_text("=other.example.org\n")
        wait_for(
            "the shorter list",
            lambda: dig(WWW, "A", "127.0.0.1", port=desk.dns).addresses() == ["127.78.0.1"],
            timeout_s=20,
            interval_s=0.2,
        )


def _filter_updates(pep: Pep) -> float:
    """Returns how often Envoy has applied a new filter configuration."""
    found = {name: value for name, value in pep.metrics().items() if "extension_config_discovery" in name}
    return sum(value for name, value in found.items() if "config_reload{" in name)


class _Slow:
    """A page whose first part has arrived. The origin sends the rest when `finish` opens its gate."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._connection = http.client.HTTPConnection("127.0.0.1", desk.http, timeout=60)
        self._connection.request("GET", f"{ANSWER}&size=20000&chunk=10000&gate=slow", headers={"Host": WWW})
        self._answer = self._connection.getresponse()
        self._body = self._answer.read(1)

    def finish(self) -> bytes:
        self._desk.open_gate("slow")
        self._body += self._answer.read()
        self._connection.close()
        assert (self._answer.status, len(self._body) >= 20000) == (200, True)
        return self._body
