"""Responses through an edge and a pair, beside direct ones.

Part of them have ranges, labels of archives, or fields that describe a body. The others violate HTTP, and browsers
accept them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.counted import Counted, together
from harness.clients import bodies
from harness.clients.commands import Answer, Curl
from harness.host.processes import Child
from harness.lab.boxes import KINDS, Boxes
from harness.origins import labelled as labelled_origin
from harness.origins import odd as odd_origin
from harness.origins.odd_responses import LENIENT, documented_refusals, refused
from harness.results.figures import at_most

TARGETS = [
    at_most("ranges_wrong", 0),
    at_most("labelled_files_changed", 0),
    at_most("stale_digests", 0),
    at_most("lenient_responses_refused", 0),
]
LABELLED, LABELLED_ADDRESS = "labelled.example.org", "203.0.113.202"
ODD_ADDRESS = "203.0.113.203"
FEW_RANGES: dict[str, Any] = {
    "types": ("js", "tgz"),
    "forms": ("plain", "negotiated", "gzip"),
    "accepted": (None, "gzip"),
}
"""With two ranges and three states of the cache, 72 requests a box."""


def measure(folder: Path, *, quick: bool) -> dict[str, Counted]:
    """Returns the sums of an edge and a pair, which run at the same time."""
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda kind: _of(folder, kind, quick=quick), ("edge", "pair")))
    return {name: together(one[name] for one in found) for name in found[0]}


def _of(folder: Path, kind: str, *, quick: bool) -> dict[str, Counted]:
    with standing(folder, kind) as box:
        ways = fetches(box)
        times = 1 if quick else 4
        return {
            "ranges_wrong": _counted(kind, bodies.ranges_wrong(*ways, **(FEW_RANGES if quick else {}))),
            "labelled_files_changed": _counted(kind, bodies.labelled_files_changed(*ways, times=times)),
            "stale_digests": _counted(kind, bodies.stale_digests(*ways, times=times)),
            "lenient_responses_refused": undocumented(box),
        }


def _counted(kind: str, found: tuple[list[str], int]) -> Counted:
    wrong, asked = found
    return Counted(len(wrong), asked, [f"{kind}: {one}" for one in wrong])


@contextmanager
def standing(folder: Path, kind: str) -> Iterator[Boxes]:
    """Runs a box or a pair with the two origins. Clients dial the origins' addresses, and are intercepted."""
    (home := folder / kind).mkdir(mode=0o755)
    with ExitStack() as stack:
        box = stack.enter_context(KINDS[kind](home, {LABELLED: LABELLED_ADDRESS}, ["nobody.example.com"]))
        for name, command in (
            ("labelled", labelled_origin.command(LABELLED_ADDRESS)),
            ("odd", odd_origin.command(ODD_ADDRESS)),
        ):
            stack.enter_context(Child(box.internet.inside(command), home / f"{name}.log")).wait_for_output("ready")
        yield box


def fetches(box: Boxes) -> tuple[Callable[..., Answer], Callable[..., Answer]]:
    """Returns the two ways to a path of the labelled origin: of a client, and of a program beside the origin."""
    known = ("--resolve", f"{LABELLED}:80:{LABELLED_ADDRESS}")
    client, beside = (Curl(box.folder, place, *known) for place in (box.clients, box.internet))

    def through(path: str, *options: str) -> Answer:
        return client.get(f"http://{LABELLED}{path}", *options)

    def direct(path: str, *options: str) -> Answer:
        return beside.get(f"http://{LABELLED}{path}", *options)

    return through, direct


def undocumented(box: Boxes) -> Counted:
    """Counts the refused responses that the operator's guide does not list."""
    client = Curl(box.folder, box.clients)
    documented = documented_refusals()
    lost = [name for name in refused(lambda path: client.get(f"http://{ODD_ADDRESS}{path}")) if name not in documented]
    return Counted(len(lost), len(LENIENT), [f"{box.name}: {name}" for name in lost])
