"""The host calls that a filter may make: the list that `longhaul render` writes, from the table of filters."""

from __future__ import annotations

import re

from .artifacts import REPOSITORY

PATCH = REPOSITORY / "deploy" / "gateway" / "envoy-gateway" / "patch.yaml"


def of_url_rewrite() -> dict[str, dict[str, str]]:
    """Returns `allowed_capabilities` of url-rewrite without prefetching. A test of the command holds the file."""
    _, found, listed = PATCH.read_text().partition("allowed_capabilities:\n")
    assert found, PATCH
    [block] = re.findall(r"\A(?: +\w+: \{\}\n)+", listed)
    return {name: {} for name in re.findall(r"\w+(?=: \{\})", block)}
