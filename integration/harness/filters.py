"""Envoy and one filter, for the tests beside a filter."""

from __future__ import annotations

import os
import unittest
from pathlib import Path

from .artifacts import REPOSITORY


def envoy_and_filter(name: str) -> tuple[Path, Path]:
    """Returns Envoy and the module of the filter `name`. If one is missing, the test is skipped, or fails where no test
    may be skipped. LONGHAUL_ENVOY and LONGHAUL_NAME_WASM name other files than those of `make build`."""
    file = name.replace("-", "_")
    wanted = {"LONGHAUL_ENVOY": "envoy", f"LONGHAUL_{file.upper()}_WASM": f"{file}.wasm"}
    for variable, product in wanted.items():
        if not _artifact(variable, product).exists():
            _skip(f"{name} in Envoy: {product} ({variable}) is not there; `make build` puts it into target/dist")
    envoy, wasm = (_artifact(variable, product) for variable, product in wanted.items())
    return envoy, wasm


def _artifact(variable: str, product: str) -> Path:
    return Path(os.environ.get(variable) or REPOSITORY / "target" / "dist" / product)


def _skip(reason: str) -> None:
    if skips := os.environ.get("LONGHAUL_SKIPS"):
        with Path(skips).open("a", encoding="utf-8") as file:
            file.write(reason + "\n")
    if os.environ.get("LONGHAUL_REQUIRE_ALL") == "1":
        raise AssertionError(reason)
    raise unittest.SkipTest(reason)
