"""Every family against every target: `make test` runs the short cases, `make test-long` all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.host.artifacts import built, need_commands, need_root, scratch
from harness.net import namespaces

from .beds import TARGETS, Target
from .cases import Outcome, run, table
from .families import FAMILIES

LONG = bool(os.environ.get("LONGHAUL_LONG_TESTS"))


@pytest.fixture(scope="module", params=TARGETS)
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    need_root()
    need_commands("ip", "nft", "nsenter", "unshare", "sysctl", "curl")
    for name in ("longhaul", "longhaul-link", "coredns", "url_rewrite.wasm", "envoy", "origins"):
        built(name)
    namespaces.sweep()
    with TARGETS[request.param](tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> Iterator[list[Outcome]]:
    """Collects the outcomes of this run. The table is printed at its end and left in target/test/hostile.txt."""
    found: list[Outcome] = []
    yield found
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    if found and reporter:
        reporter.write_line("")
        reporter.write_line(table(found))


@pytest.mark.parametrize("family", [pytest.param(name, marks=pytest.mark.long if LONG else ()) for name in FAMILIES])
def test_nothing_breaks(outcomes: list[Outcome], target: Target, family: str, folder_of_results: Path) -> None:
    ended = run(family, FAMILIES[family], target, long=LONG)
    outcomes += ended
    (folder_of_results / "hostile.txt").write_text(table(outcomes) + "\n")
    broken = [one for one in ended if one.broke]
    assert not broken, "\n".join(map(str, broken))


@pytest.fixture(scope="module")
def folder_of_results() -> Path:
    return scratch("test")
