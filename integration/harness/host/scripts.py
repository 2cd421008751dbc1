"""Loads scripts of tools/ and of integration/results/ as modules, so that tests can call their functions."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from types import ModuleType

from .artifacts import REPOSITORY


def load_tool(name: str) -> ModuleType:
    """Loads the script NAME of one of the two folders. It has no `.py`, and leaves no cache beside itself."""
    folder = next(
        one for one in (REPOSITORY / "tools", REPOSITORY / "integration" / "results") if (one / name).exists()
    )
    loader = importlib.machinery.SourceFileLoader(name, str(folder / name))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module
