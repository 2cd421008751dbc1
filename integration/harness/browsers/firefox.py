"""A real Firefox in a namespace, with a fresh profile. Reports requests and their servers' addresses.

Mozilla's own driver speaks Marionette, the browser's protocol for automation. CI has neither of the two.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from harness.host.artifacts import Missing, need_commands
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.net.namespaces import Namespace
from harness.net.sockets import enter

from .chromium import Request

PROGRAM = "firefox-esr"
PORT = 2828
PREFERENCES: Mapping[str, Any] = {
    # Only the page may use the link. The browser itself switches off the rest of its services while it is driven.
    "app.normandy.enabled": False,
    "browser.contentblocking.category": "custom",
    "browser.safebrowsing.downloads.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.systemAddon.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "http://127.0.0.1:9/",
    "toolkit.telemetry.unified": False,
    # Pages over http are http pages. The bed's browsers do not try https first.
    "dom.security.https_first": False,
    "dom.security.https_first_schemeless": False,
    # Names are looked up at the network's resolver.
    "doh-rollout.disable-heuristics": True,
    "network.trr.mode": 5,
    # Firefox queries for HTTPS records, but not while it is driven.
    "network.dns.native_https_query_in_automation": True,
}
WATCH = """
const seen = [];
const text = (take) => { try { return String(take()); } catch (_) { return ""; } };
const observer = { observe(subject) {
  const channel = subject.QueryInterface(Ci.nsIHttpChannel);
  const internal = channel.QueryInterface(Ci.nsIHttpChannelInternal);
  seen.push({
    url: channel.URI.spec,
    status: Number(text(() => channel.responseStatus)) || 0,
    failure: Components.isSuccessCode(channel.status) ? "" : text(() => channel.status.toString(16)),
    protocol: text(() => channel.protocolVersion),
    remote: text(() => internal.remoteAddress) + ":" + text(() => internal.remotePort),
  });
} };
Services.obs.addObserver(observer, "http-on-stop-request");
globalThis.longhaulSeen = seen;
"""
"""Script: notes each request that has ended."""
TAKE = "return JSON.stringify(globalThis.longhaulSeen.splice(0));"


class Firefox:
    """One browser process with its own profile. All calls run in one thread, which is in the browser's namespace."""

    def __init__(self, driver: Any, thread: ThreadPoolExecutor) -> None:
        self._driver, self._thread = driver, thread

    def _call(self, what: Callable[[], Any]) -> Any:
        return self._thread.submit(what).result()

    def privileged(self, script: str) -> Any:
        """Runs a script with the browser's own rights, and returns its value."""

        def run() -> Any:
            with self._driver.using_context("chrome"):
                return self._driver.execute_script(script, sandbox="system", new_sandbox=False)

        return self._call(run)

    def navigate(self, url: str, *, timeout_s: float = 60.0) -> str:
        """Loads a page, until its load event. Returns the error that the browser shows, or nothing."""
        from marionette_driver.errors import TimeoutException, UnknownException

        def go() -> str:
            self._driver.timeout.page_load = timeout_s
            try:
                self._driver.navigate(url)
            except (UnknownException, TimeoutException) as reason:
                return str(reason).splitlines()[0]
            return ""

        return self._call(go)

    def evaluate(self, script: str, *, timeout_s: float = 60.0) -> Any:
        """Awaits the value of an expression in the page."""
        body = f"const done = arguments[0]; Promise.resolve({script}).then(done, (e) => done('error: ' + e));"

        def run() -> Any:
            self._driver.timeout.script = timeout_s
            return self._driver.execute_async_script(body, sandbox=None)

        return self._call(run)

    def requests(self) -> list[Request]:
        """Returns the requests that have ended since the last call."""
        return [Request(one["url"], "", **_result(one)) for one in json.loads(self.privileged(TAKE))]

    def load(self, url: str, *, timeout_s: float = 60.0) -> tuple[str, list[Request]]:
        """Loads a page. Returns the error that the browser shows, and the requests."""
        self.requests()
        return self.navigate(url, timeout_s=timeout_s), self.requests()


def _result(one: dict[str, Any]) -> dict[str, Any]:
    done = not one["failure"] and one["status"] > 0
    return {key: one[key] for key in ("status", "failure", "protocol", "remote")} | {"finished": done}


@contextmanager
def firefox(
    folder: Path,
    namespace: Namespace,
    authority: Authority,
    preferences: Mapping[str, Any] | None = None,
) -> Iterator[Firefox]:
    """Starts a fresh browser, and deletes everything that it wrote afterwards."""
    need_commands(PROGRAM, "certutil")
    try:
        from marionette_driver.marionette import Marionette
    except ImportError:
        raise Missing("no driver of Firefox: `make test-browsers` and `make bench ONLY=instant` install it") from None
    home = Path(tempfile.mkdtemp(prefix="firefox-", dir=folder))
    (profile := home / "profile").mkdir()
    write_preferences(profile, {**PREFERENCES, "marionette.port": PORT, **(preferences or {})})
    authority.trust_in_profile(profile)
    command = [
        PROGRAM,
        "--headless",
        "--no-remote",
        "--marionette",
        "--remote-allow-system-access",
        "--profile",
        profile,
    ]
    env = {"HOME": str(home), "TMPDIR": str(home), "MOZ_CRASHREPORTER_DISABLE": "1", "MOZ_DISABLE_CONTENT_SANDBOX": "1"}
    try:
        with (
            Child(namespace.inside(command), home / "firefox.log", env=env, stop_timeout_s=5.0),
            ThreadPoolExecutor(1, initializer=enter, initargs=(namespace,)) as thread,
        ):
            driver = Marionette("127.0.0.1", port=PORT, startup_timeout=60)
            wait_for("the session of Firefox", lambda: thread.submit(driver.start_session).result(), timeout_s=60)
            made = Firefox(driver, thread)
            made.privileged(WATCH)
            yield made
            with suppress(Exception):
                thread.submit(driver.delete_session).result(5)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def write_preferences(profile: Path, preferences: Mapping[str, Any]) -> None:
    """Writes the settings that a profile begins with."""
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences.items())
    (profile / "user.js").write_text("".join(lines))
