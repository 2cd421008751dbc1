"""Fixtures of the tests with Envoy Gateway."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the test's own."""
    return tmp_path
