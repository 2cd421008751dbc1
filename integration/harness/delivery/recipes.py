"""The recipes by which operators install a box, followed as they are written: apt, Ansible, compose, quadlet. A recipe
that does not work raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from . import ansible, containers, from_apt

RECIPES: Mapping[str, Callable[[Path], None]] = {
    "apt": from_apt.follow,
    "ansible": ansible.follow,
    "compose": containers.follow_compose,
    "quadlet": containers.follow_quadlet,
}
"""Each follows its recipe in an empty folder."""
