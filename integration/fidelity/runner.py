"""Loads every page twice without Longhaul and once with it at each level, and judges as soon as all loads are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from harness.artifacts import Missing, built, need_commands, need_root
from harness.browser import Browser, browser
from harness.pages import Page

from .bed import FidelityBed
from .compare import Difference, Verdict, compare
from .exceptions import Exceptions
from .observe import Observation, observe
from .sitefile import FONTS, SiteFile

BROWSER_FLAGS = (
    # Frames of other sites stay in the page's process, where their requests are seen with the page's.
    "--disable-site-isolation-trials",
    # How far below the window lazy images are loaded depends on how fast the browser thinks its network is.
    "--blink-settings=lazyLoadEnabled=false",
    # Nothing is in the foreground of three browsers without a screen.
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
        """No difference at all, explained or not."""
        return not self.verdict.differences


def subjects(saved: Iterable[Page], ours: Iterable[SiteFile]) -> list[Subject]:
    """Pages of our own at both levels, saved ones at the level that is the default."""
    own = [Subject(one.name, one.url, ("safe", "full"), one.about) for one in ours]
    return own + [Subject(page.host, page.url, ("safe",)) for page in saved]


class Runner:
    """The beds and their browsers, one thread each: without Longhaul, and for each level with it."""

    def __init__(self, folder: Path, saved: list[Page], ours: list[SiteFile]) -> None:
        self.subjects = subjects(saved, ours)
        self._folder = folder
        self._saved = saved
        self._ours = ours
        self._stack = ExitStack()
        self._browsers: dict[str, Browser] = {}
        self._threads: dict[str, ThreadPoolExecutor] = {}

    def __enter__(self) -> Runner:
        with ExitStack() as stack:
            for level in ("safe", "full"):
                folder = self._folder / level
                folder.mkdir()
                pages = self._saved if level == "safe" else []
                bed = stack.enter_context(FidelityBed(folder, level, pages, self._ours))
                clients = {level: bed.topology.clients}
                if level == "safe":
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
        """Compares everything; `report` gets each result and the share that is done."""
        loads = {
            subject: [self._submit("direct", subject), self._submit("direct", subject)]
            + [self._submit(level, subject) for level in subject.levels]
            for subject in self.subjects
        }
        waiting = {one: subject for subject, futures in loads.items() for one in futures}
        results: list[Result] = []
        for done, future in enumerate(as_completed(waiting), 1):
            subject = waiting[future]
            if all(one.done() for one in loads[subject]):
                first, second, *others = (one.result() for one in loads[subject])
                for level, ours in zip(subject.levels, others, strict=True):
                    result = self._judge(subject, level, [first, second], ours, known)
                    results.append(result)
                    report(result, done / len(waiting))
        return sorted(results, key=lambda one: (self.subjects.index(one.subject), one.level))

    def _judge(
        self, subject: Subject, level: str, without: list[Observation], ours: Observation, known: Exceptions
    ) -> Result:
        """A difference that nobody explained has to be there again: a timer that was late is no breakage."""
        result = judge(subject, level, without, [ours], known)
        if result.unexplained:
            again = [self._submit("direct", subject), self._submit(level, subject)]
            first, second = (one.result() for one in again)
            result = judge(subject, level, [*without, first], [ours, second], known)
        return result

    def _submit(self, way: str, subject: Subject) -> Future[Observation]:
        return self._threads[way].submit(observe, self._browsers[way], subject.url)


def judge(
    subject: Subject, level: str, without: list[Observation], ours: list[Observation], known: Exceptions
) -> Result:
    """Compares the loads of one page at one level and looks the differences up."""
    result = Result(subject, level, without[0], ours[0], compare(without, ours))
    for difference in result.verdict.differences:
        if why := known.explain(subject.name, level, difference):
            result.explained.append((difference, why))
        else:
            result.unexplained.append(difference)
    return result


def need() -> None:
    """What a run needs of the machine."""
    need_root()
    need_commands("ip", "nft", "nsenter", "unshare", "sysctl", "chromium", "certutil")
    for name in ("longhaul", "coredns", "url_rewrite.wasm", "envoy", "origins"):
        built(name)
    if not FONTS.is_dir():
        raise Missing(f"needs the fonts in {FONTS} (Debian package fonts-dejavu-core)")
