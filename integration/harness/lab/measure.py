"""One page load: by the browser's clock and network events, and by what the link counted meanwhile."""

from __future__ import annotations

import base64
import io
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from harness.browsers.chromium import Browser, Load, Request
from harness.browsers.devtools import DevToolsError
from harness.clients.moved import true_url
from harness.host.waiting import Timeout

from .contenders import LinkContender
from .contenders.base import LinkTrack
from .line import FURTHER_PROXY_ADDRESSES
from .pages import Page
from .quiet import wait_until_quiet
from .saved import SavedPage
from .served import ServedPage

FIRST_PHOTO = 'img[src*=".jpg"]'
PICTURE_PX = (360, 480)

SETTLE_MS = 200
"""The wait beyond a round trip. Requests that the load event starts have begun by then."""


@dataclass(frozen=True)
class Step:
    """A request of a load, for waterfalls. Times are milliseconds after the browser requested the page."""

    name: str
    kind: str
    server: str
    protocol: str
    started_ms: float
    sent_ms: float | None
    """The time when its connection was open and it was sent. None if it needed no connection or failed."""
    answered_ms: float | None
    ended_ms: float
    bytes: int
    failure: str


@dataclass
class Run:
    """One load of one page by one contender. `problem` is empty when every object of the page loaded."""

    experiment: str
    link: str
    page: str
    scheme: str
    contender: str
    repeat: int
    cache: str = "cold"
    """The other values are of the same browser: "warm" is the same page again, "second" a second page of its site."""
    problem: str = ""
    load_ms: float = 0.0
    first_byte_ms: float = 0.0
    objects: int = 0
    """Objects of the page that loaded, itself among them."""
    expected_objects: int = 0
    failures: list[str] = field(default_factory=list)
    connections: int = 0
    """TCP connections opened over the link."""
    dns_queries: int = 0
    bytes_down: int = 0
    """Whole IP packets delivered to the client's side."""
    bytes_up: int = 0
    busy_ms: float = 0.0
    """The time that the link spent sending towards the client."""
    queueing_p50_ms: float = 0.0
    queueing_max_ms: float = 0.0
    lost_packets: int = 0
    lateness_p99_ms: float = 0.0
    """The instrument's own error."""
    doubts: list[str] = field(default_factory=list)
    """The reasons not to trust the instrument in this run."""
    steps: list[Step] = field(default_factory=list)
    picture: str = ""
    """The page from its first photograph on, as the browser showed it: JPEG in base64, if it was requested."""

    def as_dict(self) -> dict[str, Any]:
        """Returns the run as values for JSON."""
        return asdict(self)

    @property
    def complete(self) -> bool:
        """Returns true if the run counts."""
        return not self.problem


def run_from(value: dict[str, Any]) -> Run:
    """The reverse of `as_dict`."""
    fields: dict[str, Any] = {**value, "steps": [Step(**step) for step in value["steps"]]}
    return Run(**fields)


def measure(
    track: LinkTrack,
    page: Page | SavedPage,
    contender: LinkContender,
    template: Run,
    *,
    warm: bool,
    timeout_s: float,
    second: Page | None = None,
    pictures: bool = False,
) -> list[Run]:
    """Loads the page with a fresh browser. If `warm`, the same browser loads it once more. Then it goes on to `second`,
    if that is given. Runs have pictures if `pictures` is set."""
    contender = expecting(track, page, contender, template.scheme, timeout_s)
    # The browser starts first, so that a load begins as soon as a box is ready. It ends first, because a box that stops
    # waits for open connections.
    with ExitStack() as way, ExitStack() as browsing:
        fresh = browsing.enter_context(track.browser(*contender.flags(track)))
        way.enter_context(contender.engaged(track))
        visits: list[tuple[str, Page | SavedPage]] = [("cold", page)]
        visits += [("warm", page)] if warm else []
        visits += [("second", second)] if second else []
        runs: list[Run] = []
        for cache, visited in visits:
            if not runs or runs[0].complete:
                runs.append(_load(track, contender, fresh, visited, template, cache, timeout_s, picture=pictures))
    return runs


def expecting(
    track: LinkTrack, page: ServedPage, contender: LinkContender, scheme: str, timeout_s: float
) -> LinkContender:
    """Returns the contender for the next load of a page, after the visit of the day before if it needs one."""
    if scheme == "http" and track.https and track.as_shipped:
        raise ValueError("a browser with https-first loads no page over http from a server that speaks https")
    url = page.url(scheme)

    def visit(by: LinkContender) -> None:
        with by.engaged(track), track.browser(*by.flags(track)) as fresh:
            assert track.line.link
            wait_until_quiet(track.line.link, track.link.rtt_ms)
            fresh.load(url, timeout_s=timeout_s, settle_s=(track.link.rtt_ms + SETTLE_MS) / 1000)

    return contender.expecting(track, url, visit)


def _load(
    track: LinkTrack,
    contender: LinkContender,
    fresh: Browser,
    page: Page | SavedPage,
    template: Run,
    cache: str,
    timeout_s: float,
    *,
    picture: bool,
) -> Run:
    url = page.url(template.scheme)
    run = run_from({**template.as_dict(), "cache": cache})
    link = track.line.link
    assert link
    quiet = cache == "warm" or not contender.settles or wait_until_quiet(link, track.link.rtt_ms)
    link.reset()
    try:
        settle_s = (track.link.rtt_ms + SETTLE_MS) / 1000
        load = fresh.load(url, timeout_s=timeout_s, settle_s=settle_s, shot_from=FIRST_PHOTO if picture else "")
    except (Timeout, DevToolsError) as problem:
        run.problem = str(problem)[:300]
        _count(run, link.statistics())
        return run
    _count(run, link.statistics())
    if not quiet:
        run.doubts.append("the link was not quiet before the load")
    if picture:
        run.picture = _picture(load.screenshot)
    _take(run, load, page)
    return run


def _take(run: Run, load: Load, page: Page | SavedPage) -> None:
    """Judges a load by the page's own list of objects, whatever URL each came under."""
    own = set(FURTHER_PROXY_ADDRESSES)
    loaded = {true_url(one.url, own) for one in load.loaded()}
    wanted = set(page.urls(run.scheme))
    absent = sorted(wanted - {_with_scheme(url, run.scheme) for url in loaded})
    run.load_ms, run.first_byte_ms = load.load_ms, load.first_byte_ms
    run.expected_objects, run.objects = len(wanted), len(wanted) - len(absent)
    run.failures = [f"{one.url}: {one.failure or one.status}" for one in load.failed()]
    run.steps = _steps(load)
    if absent:
        run.problem = f"{len(absent)} of {len(wanted)} objects did not load: {', '.join(absent[:3])}"
    elif run.load_ms <= 0:
        run.problem = "the browser reports no load event"


def _picture(screenshot: bytes) -> str:
    shown = Image.open(io.BytesIO(screenshot)).convert("RGB").crop((0, 0, *PICTURE_PX))
    encoded = io.BytesIO()
    # The quality of what it shows must not be lost here.
    shown.save(encoded, "JPEG", quality=93, subsampling=0)
    return base64.b64encode(encoded.getvalue()).decode()


def _with_scheme(url: str, scheme: str) -> str:
    return f"{scheme}://{url.split('://', 1)[-1]}"


def _count(run: Run, counted: dict[str, Any]) -> None:
    down, up = counted["down"], counted["up"]
    run.connections = counted["tcp"]["connections"]
    run.dns_queries = counted["dns"]["queries"]
    run.bytes_down, run.bytes_up = down["delivered"]["bytes"], up["delivered"]["bytes"]
    run.busy_ms = down["busy_s"] * 1000
    run.lost_packets = sum(cause["packets"] for way in (down, up) for cause in way["dropped"].values())
    if queueing := down["queueing"]:
        run.queueing_p50_ms, run.queueing_max_ms = queueing["p50_ms"], queueing["max_ms"]
    if lateness := down["lateness"]:
        run.lateness_p99_ms = lateness["p99_ms"]
    run.doubts = list(_doubts(counted))


def _doubts(counted: dict[str, Any]) -> list[str]:
    found = []
    if counted["scheduling"] != "real_time":
        found.append(f"the link emulator ran with {counted['scheduling']} scheduling")
    for end in ("kernel_drops_a", "kernel_drops_b"):
        if lost := counted[end]["before_the_link"]:
            found.append(f"the kernel lost {lost} packets before the link")
    return found


def _steps(load: Load) -> list[Step]:
    begin_s = min((one.started_s for one in load.requests), default=0.0)
    return [_step(one, begin_s) for one in sorted(load.requests, key=lambda one: one.started_s)]


def _step(one: Request, begin_s: float) -> Step:
    def at(key: str) -> float | None:
        offset = one.timing.get(key, -1)
        return (one.timing["requestTime"] - begin_s) * 1000 + offset if offset >= 0 else None

    return Step(
        name=Path(one.url.split("?")[0]).name or "/",
        kind=one.kind,
        server=one.remote,
        protocol=one.protocol,
        started_ms=(one.started_s - begin_s) * 1000,
        sent_ms=at("sendStart"),
        answered_ms=at("receiveHeadersEnd"),
        ended_ms=(max(one.ended_s, one.started_s) - begin_s) * 1000,
        bytes=one.bytes_on_wire,
        failure=one.failure,
    )
