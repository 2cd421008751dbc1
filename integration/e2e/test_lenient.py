"""Responses that browsers accept although they violate HTTP, through one box."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.bed import TestBed
from harness.host.processes import Child
from harness.origins import odd as odd_origin
from harness.origins.odd_responses import LENIENT, documented_refusals, refused

ODD = "203.0.113.201"


@pytest.fixture(scope="module", autouse=True)
def standing_origin(bed: TestBed) -> Iterator[None]:
    """The origin of odd responses."""
    origin = Child(bed.topology.internet.inside(odd_origin.command(ODD)), bed.folder / "odd.log")
    try:
        origin.wait_for_output("ready")
        yield
    finally:
        origin.stop()


def test_the_edge_refuses_the_odd_responses_that_the_guide_lists_and_no_others(bed: TestBed) -> None:
    assert refused(lambda path: bed.curl.get(f"http://{ODD}{path}")) == documented_refusals()


def test_few_of_them_are_refused_directly(bed: TestBed) -> None:
    with bed.without_longhaul():
        direct = refused(lambda path: bed.curl.get(f"http://{ODD}{path}", "--http0.9"))
    assert len(direct) < len(LENIENT) / 3, direct
