"""`longhaul check --here` refuses what `longhaul run` refuses, in the same words. Its output fits a terminal."""

from __future__ import annotations

import itertools
import json
import os
import pty
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.boxes.desk import Desk
from harness.boxes.pep import Pep, command
from harness.host.artifacts import built
from harness.host.ports import free_ports

CASES = Path(__file__).parent.parent.parent / "envoy-config/longhaul/tests/config"


def names(kind: str) -> list[str]:
    found = sorted(path.name for path in (CASES / kind).glob("*.yaml"))
    assert found
    return found


@pytest.mark.parametrize("name", names("refused"))
def test_both_refuse_a_wrong_file_in_the_same_words(tmp_path: Path, name: str) -> None:
    shutil.copytree(CASES, tmp_path / "config")
    path = tmp_path / "config/refused" / name
    checked = command("check", "--here", path)
    ran = command("run", path, "--state", tmp_path / "state")
    assert (checked.returncode, ran.returncode) == (2, 2)
    assert checked.stderr == ran.stderr


def on_loopback(path: Path, folder: Path) -> Path:
    """Writes the case with free ports and addresses of loopback, which any user may open."""
    text = path.read_text()
    found = re.search(r"^role: (\w+)", text, re.MULTILINE)
    role = found[1] if found else "edge"
    ports = iter(free_ports(20))
    addresses = itertools.count(1)
    # The addresses of one listener have one port.
    chosen: dict[str, int] = {}

    def own(found: re.Match[str]) -> str:
        port = chosen.setdefault(found[2], next(ports))
        return f'"[::1]:{port}"' if found[1].startswith("[") else f"127.0.0.1:{port}"

    text = re.sub(r'"?(?<![\w.])(0\.0\.0\.0|127\.0\.0\.1|192\.0\.2\.1|\[::\]|\[2001:db8::1\]):(\d+)"?', own, text)
    # Nothing listens there, so that no name waits for a response.
    text = re.sub(r'"?\b192\.0\.2\.5\d(?::\d+)?\b"?', lambda _: f"127.0.0.1:{next(ports)}", text)
    text = re.sub(
        r"addresses: \[(.*?)\]",
        lambda them: f"addresses: [{', '.join(f'127.0.0.{next(addresses)}' for _ in them[1].split(','))}]",
        text,
    )
    text = text.replace("/var/cache/longhaul", str(folder / "cache"))
    if role == "ground":
        text = text.replace("split: {", f"split: {{ listen: 127.0.0.1:{next(ports)},")
    if not re.search(r"^listen:", text, re.MULTILINE):
        keys = ("metrics",) if role == "ground" else ("http", "tls", "dns", "metrics")
        text += f"listen: {{ {', '.join(f'{key}: 127.0.0.1:{next(ports)}' for key in keys)} }}\n"
    if role != "remote" and not re.search(r"^cache:", text, re.MULTILINE):
        text += f"cache: {{ dir: {folder / 'cache'} }}\n"
    changed = path.with_suffix(".loopback.yaml")
    changed.write_text(text)
    return changed


@pytest.mark.parametrize("name", names("accepted"))
def test_a_file_that_check_accepts_here_runs(tmp_path: Path, name: str) -> None:
    shutil.copytree(CASES, tmp_path / "config")
    path = on_loopback(tmp_path / "config/accepted" / name, tmp_path)
    checked = command("check", "--here", path, "--state", tmp_path / "state")
    assert checked.returncode == 0, checked.stderr
    with Pep(path, tmp_path, log_requests=False) as pep:
        assert pep.child.process.poll() is None, pep.output()


@contextmanager
def taken_port(desk: Desk) -> Iterator[Path]:
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", desk.http))
        holder.listen()
        yield desk.write()


@contextmanager
def cache_below_a_file(desk: Desk) -> Iterator[Path]:
    (desk.folder / "file").write_text("")
    yield desk.write(cache={"dir": str(desk.folder / "file/cache")})


@contextmanager
def cache_larger_than_the_disk(desk: Desk) -> Iterator[Path]:
    yield desk.write(cache={"dir": str(desk.folder / "new/cache"), "size": "1000tib"})


@contextmanager
def address_of_another_machine(desk: Desk) -> Iterator[Path]:
    yield desk.write(listen={**desk.config["listen"], "http": f"192.0.2.77:{desk.http}"})


@contextmanager
def right_file(desk: Desk) -> Iterator[Path]:
    yield desk.write()


def without_figures(said: str) -> str:
    """Removes the figures of free disk space, which change from one call to the next."""
    return re.sub(r"has \S+ free", "has room", said)


Situation = Callable[[Desk], Any]
MACHINES: dict[str, tuple[Situation, dict[str, Any], str]] = {
    "a port in use": (taken_port, {}, "is in use by"),
    "an address of another machine": (address_of_another_machine, {}, "is not an address of this machine"),
    "no Envoy": (right_file, {"LONGHAUL_ENVOY": "/nonexistent/envoy"}, "Envoy was not found"),
    "no filter": (right_file, {"LONGHAUL_URL_REWRITE": "/nonexistent/filter"}, "filter was not found"),
    "no authorities": (right_file, {"SSL_CERT_FILE": "/nonexistent/ca.pem"}, "no certificate authorities found"),
}


@pytest.mark.parametrize(
    ("situation", "words"),
    [(cache_below_a_file, "Not a directory"), (cache_larger_than_the_disk, "`cache.size` is 1000tib")],
)
def test_a_cache_without_room_is_a_warning_because_run_starts_with_less(
    desk: Desk, situation: Situation, words: str
) -> None:
    with situation(desk) as path:
        here = command("check", "--here", path, "--state", desk.folder / "state")
    assert here.returncode == 0, here.stderr
    assert words in here.stderr
    assert "A run starts with a smaller cache, or without one" in here.stderr


@pytest.mark.parametrize("what", MACHINES)
def test_check_here_refuses_what_run_refuses_on_this_machine_and_check_warns_of_it(desk: Desk, what: str) -> None:
    situation, environment, words = MACHINES[what]
    state = desk.folder / "state"
    with situation(desk) as path:
        here = command("check", "--here", path, "--state", state, **environment)
        plain = command("check", path, "--state", state, **environment)
        assert not state.exists(), "check makes nothing"
        ran = command("run", path, "--state", state, **environment)
    assert (here.returncode, plain.returncode, ran.returncode) == (1, 0, 1)
    refusals = [line.removeprefix("error: ") for line in ran.stderr.splitlines() if line.startswith("error: ")]
    assert words in "".join(refusals), ran.stderr
    for refusal in refusals:
        assert without_figures(f"error: {refusal}") in without_figures(here.stderr)
        assert without_figures(f"warning: {refusal}") in without_figures(plain.stderr)


def test_a_second_run_of_a_file_is_refused_and_check_finds_nothing_wrong_with_the_first(desk: Desk) -> None:
    path = desk.write()
    with Pep(path, desk.folder) as pep:
        ran = command("run", path, "--state", pep.state)
        assert ran.returncode == 1
        assert ran.stderr.startswith("error: another longhaul (process ")
        for more in ([], ["--here"]):
            checked = command("check", *more, path, "--state", pep.state)
            assert checked.returncode == 0, checked.stderr
            assert "in use" not in checked.stderr
            assert "another longhaul" not in checked.stderr


def test_a_congestion_control_that_no_kernel_has_points_to_its_line(desk: Desk) -> None:
    path = desk.write(transport={"congestion_control": "bbr9"})
    line = 1 + path.read_text().splitlines().index('transport: {"congestion_control": "bbr9"}')
    plain, here = command("check", path), command("check", "--here", path)
    assert (plain.returncode, here.returncode) == (0, 1)
    assert "no congestion control `bbr9`" in plain.stderr
    assert f"longhaul.yaml:{line}:" in plain.stderr


def test_the_output_is_short_fits_the_terminal_and_has_a_form_for_programs(desk: Desk) -> None:
    path = desk.write(engine="wasm")
    for columns in (80, 100):
        lines = command("check", path, COLUMNS=str(columns)).stdout.splitlines()
        assert lines[0] == f"{path}: ok, role edge"
        # A long word, such as the path of the cache, is not broken.
        wide = [line for line in lines[1:] if len(line) > columns and " " in line[13:].strip()]
        assert not wide
        assert 8 <= len(lines) <= 19, lines
    document = json.loads(command("check", path, "--json").stdout)
    assert (document["ok"], document["role"]) == (True, "edge")
    assert f"http 127.0.0.1:{desk.http}" in document["summary"]["opens"]
    assert {"name", "value", "formula", "source"} <= document["derived"][0].keys()
    refused = command("check", desk.write(link={"rtt": "600"}), "--json")
    problem = json.loads(refused.stdout)["problems"][0]
    assert (refused.returncode, problem["severity"], problem["line"]) == (2, "error", 2)
    assert refused.stderr == ""


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colours_appear_on_a_terminal_that_has_them(desk: Desk, environment: dict[str, str], coloured: bool) -> None:
    path = desk.write(link={"rtt": "600"})
    ours = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb", buffering=0) as said:
        done = subprocess.run(
            [str(built("longhaul")), "check", str(path)], stderr=follower, stdout=subprocess.PIPE, check=False,
            env={**ours, **environment},
        )  # fmt: skip
        assert done.returncode == 2
        text = said.read(65536)
    os.close(follower)
    assert (b"\x1b[" in text) == coloured
