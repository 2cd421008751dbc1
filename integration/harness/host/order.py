"""The order of the files of tests: the longest first.

`make test` runs several files at a time. A long file that begins last runs alone at the end. The other processes have
nothing to do then. pytest-xdist begins with the files of the most tests, and those are not the longest.
"""

from __future__ import annotations

import pytest

LONGEST = (
    "e2e/test_neighbours.py",
    "e2e/test_pair.py",
    "fidelity/test_fidelity.py",
    "e2e/test_guide.py",
    "e2e/test_bundling.py",
    "hostile/test_hostile.py",
    "e2e/test_cache_parents.py",
    "e2e/test_names_ahead.py",
    "experiments/tests/test_quick.py",
    "e2e/test_pair_direct.py",
    "e2e/test_package.py",
    "e2e/test_tunnels.py",
    "harness/tests/test_beds.py",
    "e2e/test_pair_problems.py",
    "soak/test_soak.py",
    "e2e/test_measure.py",
    "e2e/test_grounds.py",
    "fresh/test_toolchain.py",
    "e2e/test_image.py",
    "e2e/test_other_ports.py",
    "e2e/test_pair_odd_origins.py",
    "clients/test_programs.py",
    "fresh/test_failures.py",
    "e2e/test_status_page.py",
    "e2e/test_status.py",
    "e2e/test_acme.py",
    "e2e/test_reload.py",
    "e2e/test_instant_browsers.py",
    "e2e/test_pair_lossy.py",
)
"""The files that take longest. `pytest --durations=0` showed this order. All others follow."""


def rank(file: str) -> int:
    """Returns the place of a file in the order. `file` is relative to `integration`."""
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Orders the tests by their files. The tests of a file keep their order."""
    items.sort(key=lambda item: rank(item.path.relative_to(config.rootpath).as_posix()))
