"""Pages whose names share a certificate, a server, both or neither, in Chromium by a pair with `dns.instant: on`.

The pages are those of `names_coalescing`. Each has new names, so each lookup is a first one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.names_beds import LINK, Clients, Way, site_of
from bench.names_coalescing import LOADS, QUICK_LOADS, broken, loads, rows
from harness.lab.instant import instant_bed
from harness.origins.shared_certificates import SharedPage, shared_pages
from harness.results.figures import at_least, at_most

TARGETS = [at_most("pages_broken", 0), at_least("pages_instant", 0.95)]


@contextmanager
def pair_instant(folder: Path, pages: Sequence[SharedPage]) -> Iterator[Clients]:
    """A pair without a list."""
    with instant_bed(folder, LINK, site=site_of(folder, pages)) as bed:
        yield Clients(bed.line.clients, bed.authority)


WAY = Way("pair, instant", "", pair_instant)


def measure(folder: Path, *, quick: bool) -> tuple[dict[str, float | None], Any]:
    """Loads every page. Returns the broken ones, and the part of pages that came from an instant address."""
    pages = shared_pages(QUICK_LOADS if quick else LOADS)
    found = loads(WAY, folder, pages)
    print(rows({WAY.name: found}), flush=True)
    return {
        "pages_broken": broken(found),
        "pages_instant": sum(one.boxed for one in found) / len(found),
    }, {"loads": [asdict(one) for one in found]}
