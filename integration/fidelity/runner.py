"""Loads every page without Longhaul and with it at each level. Pages that differ are loaded again both ways and judged.

Most pages do the same at once. For the others, more loads separate the effects of Longhaul from the page's own changes:
a random number, a timer, an animation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeVar

from harness.browsers.chromium import Browser, browser
from harness.host.artifacts import Missing, built, need_commands, need_root
from harness.origins.pages import Page

from .bed import FidelityBed
from .compare import Difference, Verdict, compare
from .exceptions import Exceptions
from .observe import Observation, observe
from .sitefile import FONTS, SiteFile

BROWSER_FLAGS = (
    # Frames of other sites stay in the page's process, where the page's session records their requests.
    "--disable-site-isolation-trials",
    # The distance at which lazy images are loaded depends on the browser's estimate of its network.
    "--blink-settings=lazyLoadEnabled=false",
    # Without a screen, none of three browsers is in the foreground.
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
)


@dataclass(frozen=True)
class Subject:
    """A page and the levels it is compared at."""

    name: str
    url: str
    levels: tuple[str, ...]
    about: str = ""
    done: str = ""
    """A script expression that must become true before the page is recorded."""
    least_moved: tuple[int, ...] = (0,)
    """For each level, the least number of requests that go to the proxy."""


@dataclass
class Result:
    """One page at one level."""

    subject: Subject
    level: str
    without: Observation
    with_longhaul: Observation
    verdict: Verdict
    explained: list[tuple[Difference, str]] = field(default_factory=list)
    unexplained: list[Difference] = field(default_factory=list)

    @property
    def identical(self) -> bool:
        """Returns whether there is no difference at all, explained or not."""
        return not self.verdict.differences


@dataclass(eq=False)
class Comparison:
    """The loads of one page at one level."""

    subject: Subject
    level: str
    without: list[Observation]
    ours: list[Observation]

    def judge(self, known: Exceptions) -> Result:
        """Compares the loads, and looks up the differences."""
        result = Result(self.subject, self.level, self.without[0], self.ours[0], compare(self.without, self.ours))
        least = self.subject.least_moved[self.subject.levels.index(self.level)]
        if result.with_longhaul.moved < least:
            what = f"only with: {result.with_longhaul.moved} requests moved, expected at least {least}"
            result.verdict.differences.append(Difference("moved", what))
        for difference in result.verdict.differences:
            if why := known.explain(self.subject.name, self.level, difference):
                result.explained.append((difference, why))
            else:
                result.unexplained.append(difference)
        return result


Key = TypeVar("Key", Subject, Comparison)
Loads = dict[str, list[Observation]]
"""By way: direct, or a level."""


def subjects(saved: Iterable[Page], ours: Iterable[SiteFile]) -> list[Subject]:
    """Returns the project's own pages at both levels, and saved ones at the default level."""
    own = [Subject(one.name, one.url, tuple(one.moves), one.about, one.done, tuple(one.moves.values())) for one in ours]
    return own + [Subject(page.host, page.url, ("safe",)) for page in saved]


class Runner:
    """The beds and their browsers, each with its own thread: one without Longhaul, and one for each level with it."""

    def __init__(self, folder: Path, saved: list[Page], ours: list[SiteFile]) -> None:
        self.subjects = subjects(saved, ours)
        self._folder = folder
        self._saved = saved
        self._ours = ours
        self._stack = ExitStack()
        self._browsers: dict[str, Browser] = {}
        self._threads: dict[str, ThreadPoolExecutor] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for level in sorted({level for one in self.subjects for level in one.levels}):
                folder = self._folder / level
                folder.mkdir()
                # The direct client is in the first bed, so each bed has all the pages.
                bed = stack.enter_context(FidelityBed(folder, level, self._saved, self._ours))
                clients = {level: bed.topology.clients}
                if not self._browsers:
                    clients["direct"] = bed.direct
                for way, namespace in clients.items():
                    self._browsers[way] = stack.enter_context(
                        browser(folder, namespace, bed.authority, flags=BROWSER_FLAGS)
                    )
                    self._threads[way] = stack.enter_context(ThreadPoolExecutor(max_workers=1))
            stack.callback(self._cancel)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def _cancel(self) -> None:
        for thread in self._threads.values():
            thread.shutdown(wait=False, cancel_futures=True)

    def run(self, known: Exceptions, report: Callable[[Result, float], None]) -> list[Result]:
        """Compares everything. `report` gets each result and the share that is done.

        An unexplained difference counts only if it appears again in the loads at the end, and not between two loads
        without Longhaul.
        """
        results: list[Result] = []
        suspects: list[Comparison] = []
        compared = self._compare({subject: ("direct", *subject.levels) for subject in self.subjects})
        for (subject, loads), share in compared:
            for level in subject.levels:
                comparison = Comparison(subject, level, loads["direct"], loads[level])
                result = comparison.judge(known)
                if result.unexplained:
                    suspects.append(comparison)
                else:
                    results.append(result)
                    report(result, share)
        again = self._compare({one: ("direct", "direct", one.level) for one in suspects})
        for (comparison, loads), share in again:
            comparison.without += loads["direct"]
            comparison.ours += loads[comparison.level]
            results.append(comparison.judge(known))
            report(results[-1], share)
        return sorted(results, key=lambda one: (self.subjects.index(one.subject), one.level))

    def _compare(self, wanted: Mapping[Key, Sequence[str]]) -> Iterator[tuple[tuple[Key, Loads], float]]:
        """Loads each page in each of the ways. Yields a page when its loads are complete, with the share that is
        done."""
        loads = {
            key: [(way, self._submit(way, key.subject if isinstance(key, Comparison) else key)) for way in ways]
            for key, ways in wanted.items()
        }
        waiting = {one: key for key, submitted in loads.items() for _, one in submitted}
        # Several loads of one page may be complete before the first of them is examined, so they are counted.
        left = Counter(waiting.values())
        for done, future in enumerate(as_completed(waiting), 1):
            key = waiting[future]
            left[key] -= 1
            if left[key] == 0:
                found: Loads = {}
                for way, one in loads[key]:
                    found.setdefault(way, []).append(one.result())
                yield (key, found), done / len(waiting)

    def _submit(self, way: str, subject: Subject) -> Future[Observation]:
        return self._threads[way].submit(observe, self._browsers[way], subject.url, subject.done)


def need() -> None:
    """Raises Missing for the first thing that this machine lacks."""
    need_root()
    need_commands("ip", "nft", "nsenter", "unshare", "sysctl", "chromium", "certutil")
    for name in ("longhaul", "coredns", "url_rewrite.wasm", "envoy", "origins"):
        built(name)
    if not FONTS.is_dir():
        raise Missing(f"needs the fonts in {FONTS} (Debian package fonts-dejavu-core)")
