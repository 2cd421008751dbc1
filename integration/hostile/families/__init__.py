"""Families of attacks, each a module with `CASES`."""

from __future__ import annotations

from ..cases import Case
from . import compression, forbidden, name_flood, names, odd_responses, schemes, sharing, slow_readers, smuggling

FAMILIES: dict[str, list[Case]] = {
    "slow readers": slow_readers.CASES,
    "schemes": schemes.CASES,
    "odd responses": odd_responses.CASES,
    "compression": compression.CASES,
    "sharing": sharing.CASES,
    "forbidden addresses": forbidden.CASES,
    "smuggling": smuggling.CASES,
    "DNS": names.CASES,
    "names of one client": name_flood.CASES,
}
