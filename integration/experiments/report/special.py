"""Sections of the experiments that are not page loads alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SPECIAL_SECTIONS: dict[str, Callable[[dict[str, Any]], str]] = {}
"""By experiment: a section made of its JSON."""
