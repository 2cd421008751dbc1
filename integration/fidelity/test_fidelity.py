"""The project's own pages and some saved ones in Chromium: the part of `make fidelity` that fits into every test
run."""

from __future__ import annotations

import pytest

from fidelity import exceptions
from fidelity.bed import BREAKAGES
from fidelity.report import line, write
from fidelity.runner import Result, Runner, need, subjects
from fidelity.sitefile import read_all
from harness.host.artifacts import Missing, corpora, scratch
from harness.net import namespaces
from harness.origins.corpus import saved_pages

SAVED = 12
"""Saved pages that are compared here; `make fidelity` takes all."""

OURS = read_all(BREAKAGES)


@pytest.fixture(scope="module")
def known() -> exceptions.Exceptions:
    return exceptions.load()


@pytest.fixture(scope="module")
def results(known: exceptions.Exceptions, tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    need()
    namespaces.sweep()
    try:
        # The pages are sorted by size, so these are spread over all sizes.
        saved = saved_pages()[:: len(saved_pages()) // SAVED][:SAVED]
    except Missing:
        saved = []
    with Runner(tmp_path_factory.mktemp("fidelity"), saved, OURS) as runner:
        found = runner.run(known, lambda result, _: print(line(result)))
    write(scratch("e2e") / "fidelity", found, known.unused([(one.subject.name, one.level) for one in found]))
    return found


@pytest.mark.parametrize("name", [one.name for one in subjects([], OURS)])
def test_a_page_of_our_own_does_the_same_with_longhaul(results: list[Result], name: str) -> None:
    mine = [one for one in results if one.subject.name == name]
    assert {one.level for one in mine} == {"safe", "full"}
    assert [(one.level, str(difference)) for one in mine for difference in one.unexplained] == []


def test_saved_pages_do_the_same_with_longhaul(results: list[Result]) -> None:
    corpora()
    saved = [one for one in results if one.level == "safe" and one.subject.name not in {page.name for page in OURS}]
    assert len(saved) == SAVED
    assert [(one.subject.name, str(difference)) for one in saved for difference in one.unexplained] == []
    assert sum(one.with_longhaul.moved for one in saved) >= 10 * SAVED


def test_every_exception_for_these_pages_is_needed(results: list[Result], known: exceptions.Exceptions) -> None:
    assert known.unused([(one.subject.name, one.level) for one in results]) == []
