"""A real Chromium in a namespace, cold for every load. Reports requests, failures, times and a screenshot."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.host.artifacts import need_commands
from harness.host.processes import Child
from harness.host.waiting import Timeout
from harness.net.authority import Authority
from harness.net.namespaces import Namespace

from .devtools import DevTools
from .film import Frame, filmed, frames

FLAGS = (
    "--headless",
    "--no-sandbox",  # the bed runs as root, where Chromium's own sandbox does not
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--no-default-browser-check",
    # Only the page may use the link: no updates, no metrics, no suggestions.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-pings",
    # The names of services that no flag turns off do not exist.
    "--host-resolver-rules="
    + ",".join(
        f"MAP {name} ~NOTFOUND"
        for name in (
            "accounts.google.com",
            "clients2.google.com",
            "content-autofill.googleapis.com",
            "optimizationguide-pa.googleapis.com",
            "safebrowsing.googleapis.com",
            "update.googleapis.com",
        )
    ),
)
HTTPS_FIRST = ("HttpsUpgrades", "HttpsFirstBalancedMode", "HttpsFirstBalancedModeAutoEnable")
"""An http page is tried over https first. Pages of the papers are http pages, where this would add round trips."""
FEATURES_OFF = ("OptimizationHints", "Translate", "MediaRouter")

TALLEST_PX = 6000
"""Largest height of a screenshot: some saved pages are very long without their style sheets."""


TIMING = """JSON.stringify({
    ...(performance.getEntriesByType('navigation')[0] || {toJSON: () => ({})}).toJSON(),
    firstPaint: (performance.getEntriesByName('first-contentful-paint')[0] || {}).startTime,
})"""
"""Script: the navigation's times and the first paint, in milliseconds after the start of the navigation."""


@dataclass
class Request:
    """One request, from the browser's network events."""

    url: str
    kind: str
    """The browser's type: Document, Image, Script, Stylesheet, Font, ..."""
    initiator: str = ""
    """The cause of the request: parser, script, preload, other, ..."""
    status: int = 0
    failure: str = ""
    protocol: str = ""
    remote: str = ""
    """Address and port of the server."""
    mime: str = ""
    bytes_on_wire: int = 0
    finished: bool = False
    started_s: float = 0.0
    ended_s: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    timing: dict[str, float] = field(default_factory=dict)
    """ResourceTiming of the protocol: `requestTime` in seconds of the same clock, the others in milliseconds after it,
    -1 for steps that did not happen."""

    @property
    def loaded(self) -> bool:
        """True if the whole body arrived with a status of success or redirection."""
        return self.finished and 200 <= self.status < 400


@dataclass
class Load:
    """One page load."""

    url: str
    load_ms: float
    """From the start of the navigation to the end of the load event."""
    first_byte_ms: float
    requests: list[Request]
    console: list[str]
    """Errors and warnings of the page, and of the browser about the page."""
    screenshot: bytes
    """PNG of the page, at most TALLEST_PX high."""
    first_paint_ms: float = 0.0
    """Until the first text or image was painted; 0 where nothing was."""
    film: list[Frame] = field(default_factory=list)
    """The pictures of the window, if the load was filmed."""

    def loaded(self) -> list[Request]:
        """Returns the requests that succeeded."""
        return [request for request in self.requests if request.loaded]

    def failed(self) -> list[Request]:
        """Returns the requests that failed."""
        return [request for request in self.requests if not request.loaded]


class Tab:
    """One tab: its DevTools session, with events of page, network and console."""

    def __init__(self, devtools: DevTools, session: str) -> None:
        self._devtools = devtools
        self.session = session

    def call(self, method: str, timeout_s: float = 30.0, **params: Any) -> dict[str, Any]:
        """Sends a DevTools call to this tab and returns its result."""
        return self._devtools.call(method, self.session, timeout_s, **params)

    def events(self) -> list[dict[str, Any]]:
        """Returns the events of this tab so far."""
        return self._devtools.events(self.session)

    def wait_for_events(self, method: str, count: int, timeout_s: float) -> None:
        """Waits until this tab has so many events of a method, or for the timeout."""

        def there(events: list[dict[str, Any]]) -> bool:
            found = (one for one in events if one["method"] == method and one.get("sessionId") == self.session)
            return sum(1 for _ in found) >= count

        self._devtools.wait_until(there, timeout_s)

    def evaluate(self, script: str) -> Any:
        """Runs a script in the page and returns its value."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return result["result"].get("value")

    def navigate(self, url: str, *, timeout_s: float, settle_s: float) -> None:
        """Loads a page. Waits for its load event, then until the network was quiet for `settle_s`."""
        answer = self.call("Page.navigate", timeout_s, url=url)
        if "errorText" not in answer:
            self._await_load(url, timeout_s, settle_s)

    def _await_load(self, url: str, timeout_s: float, settle_s: float) -> None:
        def loaded(events: list[dict[str, Any]]) -> bool:
            return any(
                one["method"] == "Page.loadEventFired" and one.get("sessionId") == self.session for one in events
            )

        if not self._devtools.wait_until(loaded, timeout_s):
            unfinished = [one.url for one in requests_of(self.events()) if not one.ended_s]
            raise Timeout(f"{url} did not load within {timeout_s:g} s; still waiting for {unfinished[:10]}")
        self.settle(settle_s)

    def settle(self, settle_s: float) -> None:
        """Waits until the network was quiet for `settle_s`."""
        quiet_since, seen = time.monotonic(), -1
        while time.monotonic() - quiet_since < settle_s:
            time.sleep(0.02)
            now = sum(1 for one in self.events() if one["method"].startswith("Network."))
            if now != seen:
                quiet_since, seen = time.monotonic(), now


class Browser:
    """One browser process with its own profile."""

    def __init__(self, devtools: DevTools, home: Path) -> None:
        self._devtools = devtools
        self._home = home

    @contextmanager
    def tab(self, *, viewport: tuple[int, int] = (1280, 900), isolated: bool = False) -> Iterator[Tab]:
        """Opens a tab. An isolated one shares no cache, cookie, worker, connection or resolved name with any other."""
        context: dict[str, Any] = {}
        if isolated:
            answer = self._devtools.call("Target.createBrowserContext", disposeOnDetach=True)
            context = {"browserContextId": answer["browserContextId"]}
        target = self._devtools.call("Target.createTarget", url="about:blank", **context)["targetId"]
        session = self._devtools.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self._devtools, session)
        try:
            for domain in ("Page", "Network", "Runtime", "Log"):
                tab.call(f"{domain}.enable")
            tab.call(
                "Emulation.setDeviceMetricsOverride",
                width=viewport[0], height=viewport[1], deviceScaleFactor=1, mobile=False,
            )  # fmt: skip
            yield tab
        finally:
            self._devtools.call("Target.closeTarget", targetId=target)
            if context:
                self._devtools.call("Target.disposeBrowserContext", **context)
            self._devtools.forget(session)

    def load(
        self,
        url: str,
        *,
        timeout_s: float = 120.0,
        settle_s: float = 0.5,
        viewport: tuple[int, int] = (1280, 900),
        film: bool = False,
        shot_from: str = "",
        isolated: bool = False,
    ) -> Load:
        """Loads a page in a new tab. Waits for its load event, then until the network was quiet for `settle_s`. The
        screenshot begins with the first element of the selector `shot_from`, or at the top."""
        with self.tab(viewport=viewport, isolated=isolated) as tab:
            with filmed(tab) if film else nullcontext():
                tab.navigate(url, timeout_s=timeout_s, settle_s=settle_s)
            timing = self._timing(tab)
            begin_s = tab.evaluate("performance.timeOrigin") / 1000
            # Before the screenshot: it stretches the window, and a responsive page then loads other images.
            events = tab.events()
            shot = self._screenshot(tab, shot_from)
        return Load(
            url=url,
            load_ms=timing.get("loadEventEnd", 0.0),
            first_byte_ms=timing.get("responseStart", 0.0),
            requests=list(requests_of(events)),
            console=list(console_of(events)),
            screenshot=shot,
            first_paint_ms=timing.get("firstPaint", 0.0),
            film=frames(events, begin_s) if film else [],
        )

    def forget_objects(self) -> None:
        """Empties the cache. The browser keeps its knowledge of servers, such as their support of HTTP/3."""
        with self.tab() as tab:
            tab.call("Network.clearBrowserCache")

    def _screenshot(self, tab: Tab, begin: str) -> bytes:
        """Takes a screenshot of the page, at most TALLEST_PX high."""
        size = tab.call("Page.getLayoutMetrics")["cssContentSize"]
        element = f"document.querySelector({json.dumps(begin or ':root')})"
        top = tab.evaluate(f"{element} ? {element}.getBoundingClientRect().top + scrollY : 0") or 0
        clip = {
            "x": 0, "y": top, "width": size["width"], "height": min(size["height"] - top, TALLEST_PX), "scale": 1,
        }  # fmt: skip
        shot = tab.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(shot["data"])

    def _timing(self, tab: Tab) -> dict[str, float]:
        value = tab.evaluate(TIMING)
        return {key: number for key, number in json.loads(value).items() if isinstance(number, int | float)}


@contextmanager
def browser(
    folder: Path,
    namespace: Namespace | None = None,
    authority: Authority | None = None,
    *,
    flags: tuple[str, ...] = (),
    as_shipped: bool = False,
    lookups_at: str = "",
) -> Iterator[Browser]:
    """Starts a fresh browser: empty profile, empty caches, no connections. Deletes everything that it wrote
    afterwards. `as_shipped` leaves https-first and QUIC on, as users have them. It looks names up by DNS over HTTPS
    alone, if `lookups_at` gives a template."""
    off = FEATURES_OFF if as_shipped else HTTPS_FIRST + FEATURES_OFF
    flags = (f"--disable-features={','.join(off)}", *flags)
    # A browser that shall use QUIC has a flag for the servers. Without it, the protocol would differ between loads.
    if not as_shipped and not any(flag.startswith("--origin-to-force-quic-on") for flag in flags):
        flags = ("--disable-quic", *flags)
    need_commands("chromium")
    home = Path(tempfile.mkdtemp(prefix="browser-", dir=folder))
    # The name of a Unix socket has at most 107 bytes, and the folders of tests have long names.
    sockets = Path(tempfile.mkdtemp(prefix="browser-"))
    try:
        if authority:
            authority.trust_in(home)
        if lookups_at:
            settings = home / "profile" / "Local State"
            settings.parent.mkdir()
            settings.write_text(json.dumps({"dns_over_https": {"mode": "secure", "templates": lookups_at}}))
        with _started(home, sockets, namespace, flags) as devtools:
            yield Browser(devtools, home)
    finally:
        shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(sockets, ignore_errors=True)


@contextmanager
def _started(home: Path, sockets: Path, namespace: Namespace | None, flags: tuple[str, ...]) -> Iterator[DevTools]:
    """Starts the process, with DevTools on its descriptors 3 (it reads) and 4 (it writes)."""
    browser_reads, we_write = (_above_4(fd) for fd in os.pipe())
    we_read, browser_writes = (_above_4(fd) for fd in os.pipe())
    command = [
        "bash", "-c", f'exec 3<&{browser_reads} 4>&{browser_writes} {browser_reads}<&- {browser_writes}>&-; exec "$@"',
        "chromium", "chromium", *FLAGS, *flags, "--remote-debugging-pipe", f"--user-data-dir={home / 'profile'}",
        "about:blank",
    ]  # fmt: skip
    child = None
    devtools = None
    try:
        child = Child(
            namespace.inside(command) if namespace else command,
            home / "browser.log",
            env={"HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_CACHE_HOME": str(home), "TMPDIR": str(sockets)},
            pass_fds=(browser_reads, browser_writes),
            stop_timeout_s=3.0,
        )
        # Our ends must be the only open ones. Otherwise nothing would show the end of the browser.
        os.close(browser_reads)
        os.close(browser_writes)
        browser_reads = browser_writes = -1
        devtools = DevTools(we_read, we_write)
        we_read = -1  # the reader thread closes it
        devtools.call("Browser.getVersion")
        yield devtools
        with suppress(Exception):
            devtools.call("Browser.close", timeout_s=2.0)
    finally:
        if child:
            child.stop()
        for fd in (browser_reads, browser_writes, we_read, we_write):
            if fd >= 0:
                os.close(fd)


def _above_4(fd: int) -> int:
    """Moves a pipe end to a descriptor that cannot collide with the shell's 3 and 4."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(fd)
    return moved


def requests_of(events: list[dict[str, Any]]) -> Iterator[Request]:
    """Combines the network events of one tab into requests, one for each hop of a redirect."""
    open_requests: dict[str, Request] = {}
    for event in events:
        params = event.get("params", {})
        match event["method"]:
            case "Network.requestWillBeSent":
                identity = params["requestId"]
                if identity in open_requests and "redirectResponse" in params:
                    hop = open_requests.pop(identity)
                    _answered(hop, params["redirectResponse"])
                    hop.finished, hop.ended_s = True, params["timestamp"]
                    yield hop
                if params["request"]["url"].startswith(("http:", "https:")):
                    open_requests[identity] = Request(
                        params["request"]["url"],
                        params.get("type", ""),
                        params.get("initiator", {}).get("type", ""),
                        started_s=params["timestamp"],
                    )
            case "Network.responseReceived" if request := open_requests.get(params["requestId"]):
                _answered(request, params["response"])
            case "Network.loadingFinished" if request := open_requests.pop(params["requestId"], None):
                request.finished, request.ended_s = True, params["timestamp"]
                request.bytes_on_wire = int(params["encodedDataLength"])
                yield request
            case "Network.loadingFailed" if request := open_requests.pop(params["requestId"], None):
                request.failure = params.get("blockedReason") or params["errorText"]
                request.ended_s = params["timestamp"]
                yield request
    yield from open_requests.values()


def _answered(request: Request, response: dict[str, Any]) -> None:
    request.status = response["status"]
    request.protocol = response.get("protocol", "")
    request.mime = response.get("mimeType", "")
    request.headers = {name.lower(): value for name, value in response.get("headers", {}).items()}
    request.timing = response.get("timing") or {}
    if "remoteIPAddress" in response:
        request.remote = f"{response['remoteIPAddress']}:{response['remotePort']}"


def console_of(events: list[dict[str, Any]]) -> Iterator[str]:
    """Returns the errors and warnings among the events of a tab."""
    for event in events:
        params = event.get("params", {})
        match event["method"]:
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                yield f"exception: {details.get('exception', {}).get('description', details['text'])}"
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                yield f"{params['type']}: " + " ".join(str(one.get("value", "")) for one in params["args"])
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                yield f"{params['entry']['level']}: {params['entry']['text']} {params['entry'].get('url', '')}"
