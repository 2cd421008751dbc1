"""The Rust toolchain on a machine that lacks it, or part of it, where rustup installs nothing by itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .machine import OFFLINE, Machine

TARGET = "wasm32-wasip1"


@pytest.fixture(scope="module")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A RUSTUP_HOME that is empty when the module begins. A toolchain is 700 MB, so each test starts with the
    state that the one before left."""
    return tmp_path_factory.mktemp("rustup")


@pytest.fixture
def machine(tmp_path: Path, empty_home: Path) -> Machine:
    return Machine(tmp_path, RUSTUP_HOME=str(empty_home))


def works(machine: Machine, toolchain: str, folder: Path) -> bool:
    """Does the toolchain compile for the filters' target, and does it have the tools that `make lint` uses?"""
    source, module = folder / "filter.rs", folder / "filter.wasm"
    source.write_text('#[unsafe(no_mangle)] pub extern "C" fn two() -> usize { vec![1, 2].len() }\n')
    module.unlink(missing_ok=True)
    commands = [
        ["rustc", "--edition", "2024", "--target", TARGET, "--crate-type", "cdylib", source, "-o", module],
        ["cargo", "clippy", "--version"],
        ["rustfmt", "--edition", "2024", source],
    ]
    done = [machine.run(*command, env={"RUSTUP_TOOLCHAIN": toolchain}).returncode for command in commands]
    assert module.exists() == (done[0] == 0)
    return done == [0, 0, 0]


def pinned(machine: Machine) -> str:
    line = next(one for one in (machine.clone / "rust-toolchain.toml").read_text().splitlines() if "channel" in one)
    return line.split('"')[1]


def toolchains(home: Path) -> Path:
    return home / "toolchains"


def test_no_network_stops_the_installation_and_leaves_nothing_behind(machine: Machine, empty_home: Path) -> None:
    line = machine.failure("toolchain", env=OFFLINE)
    assert "the download failed" in line
    assert "Connect this machine to the Internet" in line
    assert list(toolchains(empty_home).glob("*")) == []


def test_an_empty_rustup_home_gets_toolchain_target_clippy_and_rustfmt(machine: Machine, tmp_path: Path) -> None:
    assert not works(machine, pinned(machine), tmp_path)
    printed = machine.make("toolchain")
    assert printed.count("\n") == 1, printed
    assert works(machine, pinned(machine), tmp_path)
    assert machine.make("toolchain", env=OFFLINE) == "", "nothing is downloaded twice"


@pytest.mark.parametrize("kind", ["target", "component"])
def test_a_linked_toolchain_without_a_part_gets_it(
    machine: Machine, empty_home: Path, tmp_path: Path, kind: str
) -> None:
    """The pinned name is a symbolic link to another installed toolchain. Some images have such a link."""
    name = pinned(machine)
    installed = next(toolchains(empty_home).glob(f"{name}-*"))
    if not installed.is_symlink():
        elsewhere = installed.rename(installed.with_name(installed.name.replace(name, "stable")))
        installed.symlink_to(elsewhere)
    part = {"target": TARGET, "component": "clippy"}[kind]
    assert machine.run("rustup", kind, "remove", part, "--toolchain", name).returncode == 0
    assert not works(machine, name, tmp_path)
    assert part in machine.make("toolchain")
    assert works(machine, name, tmp_path)
    assert installed.is_symlink()


def test_a_custom_toolchain_is_left_alone_and_the_pinned_one_is_used(
    machine: Machine, empty_home: Path, tmp_path: Path
) -> None:
    """rustup refuses to add a target to a linked tree. The pinned toolchain is installed beside it."""
    custom = tmp_path / "custom"
    installed = next(toolchains(empty_home).glob("stable-*"))
    shutil.copytree(installed, custom, copy_function=lambda source, to: Path(to).hardlink_to(source), symlinks=True)
    shutil.rmtree(custom / "lib" / "rustlib" / TARGET)
    for record in ("components", "multirust-channel-manifest.toml", "multirust-config.toml"):
        (custom / "lib" / "rustlib" / record).unlink()
    assert machine.run("rustup", "toolchain", "link", "custom", custom).returncode == 0
    assert machine.run("rustup", "target", "remove", TARGET, "--toolchain", pinned(machine)).returncode == 0

    active = {"RUSTUP_TOOLCHAIN": "custom"}
    assert TARGET in machine.make("toolchain", env=active)
    assert not (custom / "lib" / "rustlib" / TARGET).exists()
    shown = machine.make("--eval", "shown: ; @rustc --print sysroot", "shown", env=active).strip()
    assert shown != str(custom)
    assert (Path(shown) / "lib" / "rustlib" / TARGET).is_dir()
    line = machine.failure("toolchain", "RUSTUP_TOOLCHAIN=custom")
    assert "takes no components" in line
