"""Two clients load the same pages through one pair, cold and warm, in Chromium: no byte of one reaches the other.

They differ in cookies, `Accept` and `Authorization`, and in nothing that a network can see: both have one address.
Every response of the origin repeats the fields of the request that identify the client.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from harness.browsers.chromium import Browser, browser
from harness.host.artifacts import built, need_commands, need_root
from harness.net import namespaces

from .beds import HOST, Target, pair_of_boxes

ROUNDS = 3
"""Everything that is ever cached or sent early has been by the third visit."""
SAID = "{cookie} {authorization} {accept}"
POLICIES = {
    "nothing": (),
    "max_age": ("cache-control: max-age=600",),
    "private": ("cache-control: private, max-age=600",),
    "no_store": ("cache-control: no-store",),
    "by_cookie": ("cache-control: max-age=600", "vary: cookie"),
    "by_accept": ("cache-control: max-age=600", "vary: accept, cookie, authorization"),
    "sets_cookie": ("cache-control: max-age=600", "set-cookie: seen={cookie}; path=/unused"),
    "validated": ("last-modified: Mon, 01 Jan 2001 00:00:00 GMT", 'etag: "one"'),
}
"""In none of these does the origin say that everybody may have it."""
KINDS = {
    "text/javascript": f"(window.said = window.said || []).push('{SAID}')",
    "text/css": f"body::after {{ content: '{SAID}' }}",
    "text/plain": SAID,
}


ASK = """
const told = [], accept = "text/plain;of=" + document.cookie.split("cookie-of-")[1];
const ask = (url) => told.push(fetch(url, { headers: { accept } }).then((one) => one.text()));
"""
"""A fetch identifies its client in `Accept`, which scripts may set."""


def order(content_type: str, body: str, policy: tuple[str, ...], name: str) -> str:
    """Returns a URL with this response."""
    lines = [f"content-type: {content_type}", *policy]
    return f"/say?{'&'.join(f'h={quote(line)}' for line in lines)}&b={quote(body)}&w={name}"


def page(name: str) -> str:
    """Returns the URL of a page with an object of every kind and policy."""
    parts = [f"<!doctype html><title>{name}</title><script>{ASK}</script><body><p id=own>{SAID}</p>"]
    for policy, lines in POLICIES.items():
        script, sheet, text = (order(kind, body, lines, f"{name}-{policy}") for kind, body in KINDS.items())
        parts.append(f'<script src="{script}"></script><link rel="stylesheet" href="{sheet}">')
        parts.append(f"<script>ask({json.dumps(text)})</script>")
    # The origin replaces names in braces. In the page's URLs the braces are quoted, so they stay for the objects.
    return order("text/html", "".join(parts), POLICIES["max_age"], name)


EVERYTHING = """(async () => JSON.stringify([
    document.documentElement.outerHTML, window.said, await Promise.all(told),
    [...document.styleSheets].map((sheet) => [...sheet.cssRules].map((rule) => rule.cssText)),
]))()"""


def seen(client: Browser, name: str, url: str, *, bears: bool) -> str:
    """Returns all text of a client's page, in a browser that has loaded nothing before."""
    with client.tab(isolated=True) as tab:
        if bears:
            tab.call("Network.setExtraHTTPHeaders", headers={"Authorization": f"Bearer of-{name}"})
        tab.call("Network.setCookie", name="session", value=f"cookie-of-{name}", url=f"http://{HOST}/")
        tab.navigate(f"http://{HOST}{url}", timeout_s=60, settle_s=0.3)
        return tab.evaluate(EVERYTHING)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    need_root()
    need_commands("ip", "nft", "nsenter", "unshare", "sysctl", "chromium")
    for name in ("longhaul", "longhaul-link", "coredns", "url_rewrite.wasm", "envoy", "origins"):
        built(name)
    namespaces.sweep()
    with pair_of_boxes(tmp_path_factory.mktemp("clients")) as running:
        yield running


@pytest.mark.parametrize("bears", [True, False], ids=["with Authorization", "with cookies alone"])
def test_a_byte_of_one_client_reaches_the_other(target: Target, bears: bool) -> None:
    url = page(f"both-{bears}")
    objects = len(POLICIES) * len(KINDS) + 1
    with browser(target.folder, target.clients) as client:
        for round_ in range(ROUNDS):
            for own, other in (("alice", "bob"), ("bob", "alice")):
                everything = seen(client, own, url, bears=bears)
                assert everything.count(f"cookie-of-{own}") >= objects, f"{own} sees what is {own}'s, round {round_}"
                for word in (f"cookie-of-{other}", f"Bearer of-{other}", f"of={other}"):
                    assert word not in everything, f"{own} sees {other}'s, round {round_}"
