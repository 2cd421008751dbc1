"""Tests that fail and pass when they run again.

Real engines, browsers and links on a busy machine are not deterministic. So `make test` runs a failed test once more
(`--reruns 1`). It lists each test that passes then, and fails if there are too many. Such a test is a fault: its first
failure is printed, to be mended. The tests of attacks run once only.
"""

from __future__ import annotations

from pathlib import Path

import pytest

MOST = 2
"""The most unstable tests of a successful run. A thousand tests run; a fault of the product shows in more of them."""
RUN_ONCE = ("hostile",)
"""The folders whose tests never run again. An attack that succeeds once has succeeded."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the tests that run once only."""
    for item in items:
        if Path(item.path).relative_to(config.rootpath).parts[0] in RUN_ONCE:
            item.add_marker(pytest.mark.flaky(reruns=0))


def unstable(config: pytest.Config) -> dict[str, str]:
    """Returns the first failure of each test that ran again, by the test's name."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    found = reporter.stats.get("rerun", []) if reporter else []
    return {report.nodeid: report.longreprtext for report in found}


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Turns success into failure if too many tests are unstable."""
    if session.exitstatus == pytest.ExitCode.OK and len(unstable(session.config)) > MOST:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints the first failure of each unstable test."""
    tests = unstable(config)
    if not tests:
        return
    terminalreporter.section(f"unstable tests: {len(tests)} failed and ran again; more than {MOST} fail the run")
    for name, failure in tests.items():
        terminalreporter.line(f"{name}\n{failure}\n")
