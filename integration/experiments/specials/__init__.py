"""Experiments that are more than loads of single pages. Each is a function of a folder, a group and a seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..plan import Group
from .connections import connections
from .error_correction import fec
from .fairness import fairness
from .field import field_bed
from .linked_pages import next_page
from .mobility import mobility
from .one_flight import one_flight
from .quic import quic

SPECIALS: dict[str, Callable[[Path, Group, int], dict[str, Any]]] = {
    "connections": connections,
    "fairness": fairness,
    "fec": fec,
    "field": field_bed,
    "mobility": mobility,
    "next-page": next_page,
    "one-flight": one_flight,
    "quic": quic,
}
"""By name. Each returns its results: runs compare "figures", and the report uses the rest."""
