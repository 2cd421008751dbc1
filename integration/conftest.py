"""A test skips with a reason if the machine lacks something. LONGHAUL_REQUIRE_ALL=1 makes every skip a failure."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

from harness.host.artifacts import Missing, list_skip

pytest_plugins = ["harness.host.order", "harness.host.unstable"]


ASKED_FOR = {
    "long": "LONGHAUL_LONG_TESTS",
    "recipes": "LONGHAUL_RECIPES",
    "arm64": "LONGHAUL_ARM64",
    "browsers": "LONGHAUL_BROWSERS",
}
"""The markers of tests that run only if a variable is set."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the tests that wait for minutes, or need programs that CI lacks, to `make` targets of their own. These are
    no skips: nothing is missing."""
    unasked = [marker for marker, variable in ASKED_FOR.items() if not os.environ.get(variable)]
    left = [item for item in items if any(item.get_closest_marker(marker) for marker in unasked)]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:  # noqa: ARG001 - pytest's names
    """A fixture that finds something missing skips the tests that use it."""
    try:
        return (yield)
    except Missing as reason:
        pytest.skip(str(reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:  # noqa: ARG001 - pytest's names
    """So does a test that finds it itself."""
    try:
        return (yield)
    except Missing as reason:
        pytest.skip(str(reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Writes skips where `make test` lists them, and turns them into failures where nothing may be missing."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = reason.removeprefix("Skipped: ")
        list_skip(reason)
        if os.environ.get("LONGHAUL_REQUIRE_ALL"):
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} did not run ({reason}), and LONGHAUL_REQUIRE_ALL is set"
    return report
