"""Each program does the same with Longhaul as without it, whether its names are steered or its traffic is
intercepted."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.lab import boxes
from harness.net import namespaces

from .compare import PROGRAMS, Program, Ways, standing
from .servers import need_apache


@pytest.fixture(scope="module")
def ways() -> Iterator[Ways]:
    boxes.need_all()
    need_apache()
    namespaces.sweep()
    # The servers' user cannot enter the folders of pytest.
    with tempfile.TemporaryDirectory(prefix="longhaul-clients-") as folder, standing(Path(folder)) as running:
        yield running


@pytest.mark.parametrize(
    "program",
    [pytest.param(one, id=one.name, marks=pytest.mark.long if one.long else ()) for one in PROGRAMS],
)
def test_a_program_does_the_same_as_without_longhaul(ways: Ways, program: Program) -> None:
    differences = ways.differences(program)
    assert not differences, "\n\n".join(differences.values())
