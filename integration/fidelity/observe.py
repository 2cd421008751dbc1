"""One load of one page: everything that is compared, in a form in which moved URLs are restored."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urldefrag, urlsplit

from harness.browsers.chromium import Browser, Request, Tab, console_of, requests_of
from harness.browsers.devtools import DevToolsError
from harness.clients.moved import is_moved, put_back, true_url
from harness.host.waiting import Timeout, wait_for

from .bed import OWN

VIEWPORT = (1280, 2400)
"""Tall instead of a stretched picture: a stretched page would load objects that it loads only on scrolling."""

LOAD_TIMEOUT_S = 30.0
SETTLE_S = 0.3
MOST_FONT_NODES = 150

SAME_WORLD = """
(() => {
  const now = Date.UTC(2026, 0, 2, 3, 4, 5);
  window.Date = new Proxy(Date, {
    construct: (real, given, target) => Reflect.construct(real, given.length ? given : [now], target),
    apply: real => new real(now).toString(),
    get: (real, key) => key === 'now' ? () => now : Reflect.get(real, key),
  });
  let seed = 1;
  Math.random = () => (seed = seed * 48271 % 2147483647) / 2147483647;
  for (const asks of ['alert', 'confirm', 'prompt', 'print']) window[asks] = () => undefined;
  performance.setResourceTimingBufferSize(5000);
})();
"""
"""Runs in every document before its own scripts. Every load has the same date and the same random numbers, and no
dialogs."""

STAND_STILL = """
for (const one of document.getAnimations()) {
  try { one.finish() } catch (endless) { one.cancel() }
}
for (const one of document.querySelectorAll('svg')) one.pauseAnimations?.();
new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))
"""

LOOK = r"""
JSON.stringify({
  faces: [...document.fonts].map(one => `${one.family} ${one.style} ${one.weight} ${one.status}`),
  timing: performance.getEntriesByType('resource').map(one => `${one.initiatorType} ${one.name}`),
  text: (document.body?.innerText ?? '').split('\n').filter(Boolean),
  state: [
    `title ${document.title}`, `charset ${document.characterSet}`, `mode ${document.compatMode}`,
    `address ${location.href}`, `base ${document.baseURI}`, `referrer ${document.referrer}`,
    `cookie ${(() => { try { return document.cookie } catch (refused) { return refused.name } })()}`,
    `frames ${window.length}`,
    `size ${document.documentElement.scrollWidth} x ${document.documentElement.scrollHeight}`,
    `sheets ${document.styleSheets.length}`, `scripts ${document.scripts.length}`,
  ],
})
"""

ISSUES = {
    "ContentSecurityPolicyIssue", "MixedContentIssue", "CorsIssue", "BlockedByResponseIssue", "SharedArrayBufferIssue",
    "SRIMessageSignatureIssue", "StylesheetLoadingIssue", "PropertyRuleIssue", "QuirksModeIssue",
}  # fmt: skip
"""Kinds of the browser's own findings that show a broken page. The others are advice."""

ISSUE_DETAILS = (
    "violatedDirective", "contentSecurityPolicyViolationType", "isReportOnly", "blockedURL", "resolutionStatus",
    "insecureURL", "resourceType", "reason", "styleSheetLoadingIssueReason", "corsErrorStatus",
)  # fmt: skip


@dataclass
class Observation:
    """The record of one load. Each dimension counts texts."""

    dimensions: dict[str, Counter[str]] = field(default_factory=dict)
    moved: int = 0
    """Requests that went to the proxy's own name."""
    upgraded: set[str] = field(default_factory=set)
    """Hosts that the browser requests only over https, by a list of its own."""
    screenshot: bytes = b""


def observe(browser: Browser, url: str, done: str = "") -> Observation:
    """Loads a page cold and records it. With `done`, it first waits for this script expression to become true."""
    with browser.tab(viewport=VIEWPORT, isolated=True) as tab:
        for domain in ("DOM", "CSS", "Audits"):
            tab.call(f"{domain}.enable")
        tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=SAME_WORLD)
        state = []
        try:
            tab.navigate(url, timeout_s=LOAD_TIMEOUT_S, settle_s=SETTLE_S)
            if done:
                wait_for(done, lambda: _is_true(tab, done), LOAD_TIMEOUT_S)
                tab.settle(SETTLE_S)
        except Timeout as late:
            state.append(f"what was waited for did not come: {str(late).partition(';')[0]}")
        events = tab.events()
        seen = json.loads(tab.evaluate(LOOK) or '{"faces": [], "timing": [], "text": [], "state": ["no document"]}')
        tab.evaluate(STAND_STILL)
        shot = tab.call("Page.captureScreenshot", format="png", optimizeForSpeed=True)["data"]
        fonts = _platform_fonts(tab)
    requests = list(requests_of(events))
    # An icon that the page does not mention: browsers request it at any time.
    documents = {urlsplit(one.url).netloc for one in requests if one.kind == "Document"}
    unmentioned = tuple(f"//{host}/favicon.ico" for host in documents)
    by_browser = [one for one in requests if one.headers.get("non-authoritative-reason") == "HSTS"]
    requests = [one for one in requests if one not in by_browser and not _has(true_url(one.url, OWN), unmentioned)]
    return Observation(
        {
            "requests": Counter(f"{one.kind} by {_asked_by(one)} {true_url(one.url, OWN)}" for one in requests),
            "failures": Counter(f"{_why(one)} {true_url(one.url, OWN)}" for one in requests if not one.loaded),
            "console": _once(_complaint(line) for line in console_of(events) if not _has(line, unmentioned)),
            "issues": _once(line for line in _issues(events) if not _has(line, unmentioned)),
            "fonts": _once([*seen["faces"], *fonts]),
            "timing": _once(_timing(line) for line in seen["timing"] if not _has(line, unmentioned)),
            "text": Counter(map(_original, seen["text"])),
            "state": _once(map(_original, [*state, *seen["state"]])),
        },
        moved=sum(is_moved(one.url, OWN) for one in requests),
        upgraded={one.url.split("/")[2] for one in by_browser},
        screenshot=base64.b64decode(shot),
    )


def _is_true(tab: Tab, expression: str) -> bool:
    try:
        return tab.evaluate(f"Boolean({expression})") is True
    except DevToolsError:
        # The page was about to leave for another.
        return False


def _has(text: str, parts: tuple[str, ...]) -> bool:
    return any(part in text for part in parts)


def _once(lines: Any) -> Counter[str]:
    return Counter(dict.fromkeys(lines, 1))


def _why(request: Request) -> str:
    return request.failure or (str(request.status) if request.status else "unanswered")


def _asked_by(request: Request) -> str:
    """Returns the initiator. Markup is called parser during parsing and other afterwards, which depends on timing."""
    return "markup" if request.initiator in ("parser", "other") else request.initiator


def _original(text: str) -> str:
    return put_back(text.encode(), OWN).decode()


def _complaint(line: str) -> str:
    """Returns a line of the console. A quoted policy is cut to its directive, because Longhaul adds sources to
    policies."""
    text = _original(line.split("\n")[0])
    # HTTP/2 has no reason phrase.
    text = re.sub(r"(responded with a status of \d+) \([^)]*\)", r"\1", text)
    return re.sub(r"""(directive:? ["'])([\w-]+) .*?(["']\. |$)""", r"\1\2\3", text)


def _timing(line: str) -> str:
    initiator, _, url = line.partition(" ")
    return f"{initiator} {urldefrag(true_url(url, OWN)).url}"


def _issues(events: list[dict[str, Any]]) -> list[str]:
    found = []
    for event in events:
        if event["method"] == "Audits.issueAdded" and (issue := event["params"]["issue"])["code"] in ISSUES:
            details = next(iter(issue["details"].values()), {})
            told = {key: details[key] for key in ISSUE_DETAILS if key in details}
            if request := details.get("request"):
                told["request"] = request.get("url", "")
            found.append(_original(f"{issue['code']} {json.dumps(told, sort_keys=True)}"))
    return found


def _platform_fonts(tab: Tab) -> list[str]:
    """Returns the fonts that text was drawn with, for elements spread over the page."""
    root = tab.call("DOM.getDocument", depth=0)["root"]["nodeId"]
    nodes = tab.call("DOM.querySelectorAll", nodeId=root, selector="body *")["nodeIds"]
    step = max(1, len(nodes) // MOST_FONT_NODES)
    drawn = set()
    for node in nodes[::step]:
        for one in tab.call("CSS.getPlatformFontsForNode", nodeId=node)["fonts"]:
            drawn.add(f"drawn with {one['familyName']}{' of the page' if one['isCustomFont'] else ''}")
    return sorted(drawn)
