"""Cookies of third parties, which decide on the connections of a Chromium.

Chromium sends requests that may have cookies and requests that may not over different connections. So a page never
shares a connection with an image of another domain where cookies of third parties are blocked. Debian's Chromium blocks
them by default. Chrome allows them.
"""

from __future__ import annotations

from harness.host.waiting import wait_for

from .chromium import Browser, Tab

SETTING = "profile.cookie_controls_mode"
ALLOW = 0
"""The setting's value, of Chromium's `CookieControlsMode`."""


def allow_third_party_cookies(browser: Browser) -> None:
    """Allows them in all further tabs of a browser, also in isolated ones."""
    with browser.tab() as tab:
        tab.navigate("chrome://settings/", timeout_s=30, settle_s=0)
        wait_for("the settings", lambda: tab.evaluate("typeof chrome.settingsPrivate") == "object")
        if not tab.evaluate(f"new Promise(done => chrome.settingsPrivate.setPref('{SETTING}', {ALLOW}, '', done))"):
            raise RuntimeError(f"Chromium does not set {SETTING}")
        wait_for("the setting", lambda: _value(tab) == ALLOW)


def _value(tab: Tab) -> object:
    return tab.evaluate(f"new Promise(done => chrome.settingsPrivate.getPref('{SETTING}', one => done(one.value)))")
