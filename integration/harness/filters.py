"""Envoy and one filter, for the tests beside a filter."""

from __future__ import annotations

import os
import unittest
from pathlib import Path

from .artifacts import dist, list_skip


def envoy_and_filter(name: str) -> tuple[Path, Path]:
    """Returns Envoy and the module of the filter `name`. If one is missing, the test is skipped, or fails where no test
    may be skipped. LONGHAUL_ENVOY and LONGHAUL_NAME_WASM name other files than those of `make build`."""
    file = name.replace("-", "_")
    envoy = _product(name, "LONGHAUL_ENVOY", "envoy")
    return envoy, _product(name, f"LONGHAUL_{file.upper()}_WASM", f"{file}.wasm")


def _product(name: str, variable: str, product: str) -> Path:
    path = Path(os.environ.get(variable) or dist() / product)
    if path.exists():
        return path
    reason = f"{name} in Envoy: {product} ({variable}) is not there; `make build` puts it into target/dist"
    list_skip(reason)
    if os.environ.get("LONGHAUL_REQUIRE_ALL") == "1":
        raise AssertionError(reason)
    raise unittest.SkipTest(reason)
