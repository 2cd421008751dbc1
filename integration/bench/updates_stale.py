"""Objects that a program requests at a remote with a cache while the ground is gone.

A fresh object must come with its true `Age`. So must a stale one, unless its server forbids that (RFC 9111 section
4.2.4) or limits it (RFC 5861 section 4). Everything else must come as an error. Each object was requested three times
before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.boxes.objects_box import WWW, Made, Shelf, ask, objects_pair
from harness.origins.http1 import Message
from harness.results.figures import at_most

TARGETS = [at_most("stale_wrong", 0)]
PROGRAM = "Debian APT-HTTP/1.3"
"""The `User-Agent` of the requests."""
STALE_AFTER_S = 5
"""Every object that has a short lifetime is stale after this time, and past its `stale-if-error` of 1 s."""
AGE_TOLERANCE_S = 2
"""`Age` and `Date` have whole seconds."""
REQUESTS = 3


@dataclass(frozen=True)
class Case:
    """An object, a request for it, and what a cache may do with it."""

    name: str
    policy: str
    """The field `Cache-Control` of its response."""
    served: bool
    """A cache without its server serves it."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Further fields of the request."""


CASES = [
    Case("fresh", "max-age=600", served=True),
    Case("fresh-shared", "max-age=1, s-maxage=600", served=True),
    Case("fresh-must-revalidate", "max-age=600, must-revalidate", served=True),
    Case("fresh-only-if-cached", "max-age=600", served=True, fields={"Cache-Control": "only-if-cached"}),
    Case("stale", "max-age=1", served=True),
    Case("stale-if-error", "max-age=1, stale-if-error=600", served=True),
    Case("stale-while-revalidate", "max-age=1, stale-while-revalidate=600", served=True),
    Case("stale-if-error-over", "max-age=1, stale-if-error=1", served=False),
    Case("stale-must-revalidate", "max-age=1, must-revalidate", served=False),
    Case("stale-proxy-revalidate", "max-age=1, proxy-revalidate", served=False),
    Case("stale-shared", "max-age=600, s-maxage=1", served=False),
    Case("no-cache", "no-cache", served=False),
    Case("no-cache-max-age", "no-cache, max-age=600", served=False),
    Case("private", "private, max-age=600", served=False),
    Case("no-store", "no-store", served=False),
]


def measure(folder: Path) -> tuple[dict[str, float | None], Any]:
    """Requests every object with the ground and without it. Returns the number of wrong responses, and why they are."""
    shelf = Shelf()
    with objects_pair(folder, {WWW: shelf.address}, cached=True) as pair:
        made_s: dict[str, float] = {}
        paths = {case.name: put(shelf, case, made_s) for case in CASES}
        for path in paths.values():
            learn(pair.http, path)
        time.sleep(STALE_AFTER_S)
        pair.ground.pep.child.stop()
        wrong: dict[str, list[str]] = {}
        for case in CASES:
            for _ in range(REQUESTS):
                got = ask(pair.http, paths[case.name], {"User-Agent": PROGRAM, **case.fields})
                problem = judged(case, got, time.time() - made_s[case.name])
                wrong.setdefault(case.name, []).extend([problem] if problem else [])
        never = ask(pair.http, shelf.put("/never-requested", b"new"), {"User-Agent": PROGRAM})
        wrong["never-requested"] = [] if never.status >= 500 else [f"status {never.status}"]
        status = pair.remote.status()
    shelf.origin.close()
    for name, problems in wrong.items():
        print(f"{name}: {problems or 'right'}", flush=True)
    return {"stale_wrong": sum(map(len, wrong.values()))}, {"wrong": wrong, "status": status}


def body_of(case: Case) -> bytes:
    """Returns the body of an object."""
    return case.name.encode() * 100


def fields_of(case: Case) -> dict[str, str]:
    """Returns the fields of its response. All have a validator, so that they are worth storing."""
    return {"Cache-Control": case.policy, "ETag": f'"{case.name}"', "Content-Type": "application/octet-stream"}


def put(shelf: Shelf, case: Case, made_s: dict[str, float]) -> str:
    """Puts an object there, which notes the time of each response in `made_s`. Returns its path."""

    def answer(_: Message) -> Made:
        made_s[case.name] = time.time()
        return 200, fields_of(case), body_of(case)

    return shelf.make(f"/{case.name}", answer)


def learn(port: int, path: str) -> None:
    """Requests an object, so that a cache that may store it does."""
    for _ in range(REQUESTS):
        got = ask(port, path, {"User-Agent": PROGRAM})
        if got.status != 200:
            raise RuntimeError(f"{path}: status {got.status} while the ground is there")


def judged(case: Case, got: Message, age_s: float) -> str:
    """Returns what is wrong with a response without the ground, or nothing. `age_s` is the true age."""
    if not case.served:
        return "" if got.status >= 500 else f"served, {case.policy}: status {got.status}, Age {got.get('age')}"
    if got.status != 200:
        return f"not served, {case.policy}: status {got.status}"
    if got.body != body_of(case):
        return f"another body: {got.body[:40]!r}"
    said = float(got.get("age") or math.nan)
    return "" if abs(said - age_s) <= AGE_TOLERANCE_S else f"Age {got.get('age')} after {age_s:.1f} s"
