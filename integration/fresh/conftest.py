"""Fixtures of the fresh machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from .machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A clone with the tools and caches of this machine."""
    return Machine(tmp_path)
