"""Longhaul as a pair, one box at each end of the link: takes part as soon as `longhaul check` accepts the roles."""

from __future__ import annotations

from .base import Contender


def pair_contenders() -> tuple[Contender, ...]:
    """The pair."""
    return ()
