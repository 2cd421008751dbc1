"""A newcomer's first evening: clone, `make run`, one page, one name, Ctrl-C, then the linters and the Rust tests."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from harness.clients.commands import Curl, dig
from harness.host.artifacts import Missing, need_commands
from harness.host.ports import is_open
from harness.host.processes import Child

from .machine import Machine

PATIENCE_S = 3600.0
"""Time to download and build everything on a slow or busy machine. Two idle cores take about six minutes."""


@pytest.fixture
def empty_machine(tmp_path: Path) -> Machine:
    """A clone without caches of rustup, cargo, Go or pip. The settings that reach registries are part of the
    machine."""
    caches = ("CARGO_HOME", "RUSTUP_HOME", "GOCACHE", "GOMODCACHE", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
    folders = {name: tmp_path / name.lower() for name in caches}
    for folder in folders.values():
        folder.mkdir()
    for name in ("config.toml", "config"):
        settings = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / name
        if settings.is_file():
            shutil.copy(settings, folders["CARGO_HOME"])
    # Go makes its modules read-only by default, and pytest could not remove them.
    others = {"PIP_NO_CACHE_DIR": "1", "GOFLAGS": f"{os.environ.get('GOFLAGS', '')} -modcacherw".strip()}
    return Machine(tmp_path, **{name: str(folder) for name, folder in folders.items()}, **others)


@pytest.mark.long
def test_two_commands_on_a_machine_with_rustup_go_and_python(empty_machine: Machine, tmp_path: Path) -> None:
    need_commands("curl", "dig")
    if taken := [port for port in (8080, 1053, 9153) if is_open(port)]:
        raise Missing(f"ports {taken} are taken: is `make run` running?")
    begun = time.monotonic()
    with Child(
        ["make", "run"], tmp_path / "run.log", cwd=empty_machine.clone, env=empty_machine.environment, clear_env=True
    ) as demo:
        demo.wait_for_output("Ctrl-C ends everything", timeout_s=PATIENCE_S)
        print(f"make run was ready after {time.monotonic() - begun:.0f} s")
        page = Curl(tmp_path).get("http://127.0.0.1:8080/", "-H", "Host: www.demo.test")
        assert page.status == 200
        assert b"http://127.0.0.1:8080/img.demo.test/" in page.body
        assert dig("www.demo.test", "A", "127.0.0.1", port=1053).addresses() == ["127.0.0.1", "127.77.0.1"]
        before_ready = demo.output().split("ready")[0]
        assert len(before_ready.splitlines()) < 20, f"it is quiet:\n{before_ready}"
        demo.interrupt()
    assert not is_open(8080)
    for unneeded in ("h3get", "longhaul-link"):
        assert not (empty_machine.clone / "target" / "dist" / unneeded).exists(), "make run builds only what it starts"
    empty_machine.make("lint", "test-rust", timeout_s=PATIENCE_S)
