"""The recipes by which operators install a box. `make test-recipes` follows each; every run reads them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.delivery import quadlet_unit
from harness.delivery.recipes import RECIPES
from harness.host.artifacts import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
ROLE = DEPLOY / "ansible" / "roles" / "longhaul"


@pytest.mark.recipes
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_gives_a_box_that_serves(recipe: str, root_bed: None, folder: Path) -> None:  # noqa: ARG001
    RECIPES[recipe](folder)


@pytest.mark.recipes
def test_the_quadlet_is_a_unit_of_systemd_that_comes_back(root_bed: None, folder: Path) -> None:  # noqa: ARG001
    quadlet_unit.follow(folder)


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["services"]["longhaul"]


def quadlet() -> dict[str, list[str]]:
    text = (DEPLOY / "quadlet" / "longhaul.container").read_text()
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", text, re.M):
        found.setdefault(name, []).append(value)
    return found


def test_compose_and_quadlet_start_the_same_container_of_this_version() -> None:
    service, unit = compose(), quadlet()
    version = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert service["image"] == unit["Image"][0] == f"localhost/longhaul:{version}-host"
    assert " ".join(service["command"]) == unit["Exec"][0]
    assert (service["network_mode"], service["read_only"]) == (unit["Network"][0], unit["ReadOnly"] == ["true"])
    assert (service["cap_drop"], unit["DropCapability"]) == (["ALL"], ["all"])
    assert [f"CAP_{name}" for name in service["cap_add"]] == unit["AddCapability"]
    assert unit["Ulimit"] == [f"nofile={service['ulimits']['nofile']}"]
    assert (service["shm_size"], service["tmpfs"]) == (unit["ShmSize"][0], unit["Tmpfs"])
    places = {volume.split(":")[1] for volume in service["volumes"]}
    assert places == {volume.split(":")[1] for volume in unit["Volume"]}
    for volume in unit["Volume"]:
        source = volume.split(":")[0]
        assert source.startswith("/") or (DEPLOY / "quadlet" / source).exists(), volume


def test_the_role_checks_the_file_where_it_will_be_after_the_files_that_it_names() -> None:
    tasks = yaml.safe_load((ROLE / "tasks" / "main.yaml").read_text())
    [config] = [number for number, task in enumerate(tasks) if "validate" in str(task)]
    copied = tasks[config]["ansible.builtin.copy"]
    assert copied["validate"].endswith(f"longhaul check --quiet %s --as {copied['dest']}")
    assert "Copy certificates" in tasks[config - 1]["name"]
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yaml").read_text())
    used = set(re.findall(r"longhaul_(?!sources)\w+", (ROLE / "tasks" / "main.yaml").read_text()))
    assert used == set(defaults)
