"""Fixtures of the tests with an API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.delivery.api_server import Api, running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the test's own."""
    return tmp_path


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """One server for all tests. They store nothing."""
    with running(tmp_path_factory.mktemp("api")) as server:
        yield server
