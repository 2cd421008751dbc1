"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.bed import TestBed
from harness.boxes.desk import Desk, desk_in
from harness.host.artifacts import built, corpora, need_commands, need_root
from harness.net import namespaces
from harness.origins.pages import Page


@pytest.fixture(scope="session")
def root_bed() -> None:
    """Skips a test in namespaces where the machine lacks something that it needs."""
    need_root()
    need_commands("ip", "nft", "nsenter", "unshare", "sysctl", "curl", "dig")
    for name in ("longhaul", "coredns", "url_rewrite.wasm", "envoy", "origins"):
        built(name)
    namespaces.sweep()


@pytest.fixture(scope="session")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBed]:  # noqa: ARG001 - order of set-up
    """The shared bed."""
    with TestBed(tmp_path_factory.mktemp("bed")) as running:
        yield running


@pytest.fixture
def saved(bed: TestBed) -> Page:
    """The saved page of the corpora."""
    corpora()
    assert bed.saved_page
    return bed.saved_page


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the test's own."""
    return tmp_path


@pytest.fixture
def desk(folder: Path) -> Iterator[Desk]:
    """A box on loopback, not yet running."""
    with desk_in(folder) as ready:
        yield ready
