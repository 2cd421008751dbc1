"""Uses of an address that a browser got before the truth was known (`dns.instant: on`): a table for each browser.

Each row has new names, so each lookup is a first one. `make test-browsers` runs the table in Firefox, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest

from harness.browsers.chromium import Browser, Request, browser, requests_of
from harness.browsers.firefox import Firefox, firefox
from harness.host.artifacts import need_commands
from harness.host.processes import whole_lines
from harness.host.waiting import wait_for
from harness.lab.instant import InstantBed, instant_bed
from harness.lab.line import is_instant
from harness.lab.odd_ports import REFLEXIVE, STUN_PORT, stun, web_ports
from harness.net.authority import Authority
from harness.net.sockets import socket_in
from harness.net.topology import PRIVATE_ADDRESS
from harness.origins.program import Site

PAGES, ANOTHER, WEB_PORTS, STUN = "203.0.113.20", "203.0.113.21", "203.0.113.22", "203.0.113.23"
"""Addresses: of pages, of a server beside it that has names of the same certificates, and of other protocols."""
PAGE = "/_/answer?body=none"
BODY_BYTES = 20_000
PROBES = {"chromium": "www.gstatic.com", "firefox": "detectportal.firefox.com"}
"""A name of captive portals for each browser."""
HELPERS = """
const text = (url, more) => fetch(url, more).then(one => one.text());
const image = url => new Promise(done => {
  const one = new Image();
  one.onload = () => done(one.naturalWidth > 0);
  one.onerror = () => done(false);
  one.src = url;
});
const echoed = url => new Promise(done => {
  const one = new WebSocket(url);
  one.onopen = () => one.send("said");
  one.onmessage = event => done(event.data);
  one.onerror = () => done("error");
});
const fails = url => fetch(url, {mode: "no-cors"}).then(() => false, () => true);
const pause = ms => new Promise(done => setTimeout(done, ms));
"""
STUN_SCRIPT = """
  const peer = new RTCPeerConnection({iceServers: [{urls: "stun:stun.$.example.org:PORT"}]});
  peer.createDataChannel("any");
  const found = new Promise(done => {
    peer.onicecandidate = event => {
      if (!event.candidate) done("none");
      else if (event.candidate.type === "srflx") done(event.candidate.address);
    };
  });
  await peer.setLocalDescription(await peer.createOffer());
  return found;
""".replace("PORT", str(STUN_PORT))
RESUMED_SCRIPT = """
  const url = "https://files.$.example.org/whole.bin";
  const bytes = async (range) => {
    const got = await fetch(url, {headers: range ? {Range: range} : {}, cache: "no-store"});
    return new Uint8Array(await got.arrayBuffer());
  };
  const cut = await fetch("https://files.$.example.org/_/answer?body=noise&size=20000&cut=9000", {cache: "no-store"})
    .then(one => one.arrayBuffer()).then(() => "whole", () => "cut");
  const begin = await bytes("bytes=0-8999");
  await pause(1500);
  const rest = await bytes("bytes=9000-");
  const whole = await bytes();
  const joined = [...begin, ...rest];
  return [cut, joined.length, joined.every((one, at) => one === whole[at])];
"""
WORKER_SCRIPT = """
  await navigator.serviceWorker.register("/worker.js");
  await navigator.serviceWorker.ready;
  while (!navigator.serviceWorker.controller) await pause(20);
  return text("/through-the-worker");
"""
WORKER = """
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", event => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", event => {
  if (event.request.url.endsWith("/through-the-worker"))
    event.respondWith(fetch("https://api.$.example.org:8443/"));
});
"""


@dataclass(frozen=True)
class Case:
    """A page, and a script in it. `$` stands for the part of the names that is new."""

    use: str
    script: str
    expected: Any
    page: str = f"https://page.$.example.org{PAGE}"


CASES = [
    Case(
        "images of a name with a server of its own, and of one with the page's, under one certificate",
        "return Promise.all(['img', 'same'].map(one => image('https://' + one + '.$.example.org/picture.svg')))",
        [True, True],
    ),
    Case("https on another port", "return text('https://api.$.example.org:8443/')", "port 8443"),
    Case("a WebSocket", "return echoed('wss://api.$.example.org/')", "said"),
    Case("a WebSocket on another port", "return echoed('wss://api.$.example.org:8443/')", "said"),
    Case(
        "http and WebSockets without TLS, on both ports",
        "return Promise.all(["
        "text('http://api.$.example.org/'), text('http://api2.$.example.org:8080/'),"
        "echoed('ws://api3.$.example.org/'), echoed('ws://api4.$.example.org:8080/')])",
        ["port 80", "port 8080", "said", "said"],
        page=f"http://page.$.example.org{PAGE}",
    ),
    Case("WebRTC with a STUN server by name", STUN_SCRIPT, REFLEXIVE[0]),
    Case("a download that ended, and resumes after seconds", RESUMED_SCRIPT, ["cut", BODY_BYTES, True]),
    Case("a service worker that fetches from another port", WORKER_SCRIPT, "port 8443"),
    Case(
        "a site that announces HTTP/3",
        "const all = []; for (let n = 0; n < 3; n += 1) {"
        "all.push((await fetch('/_/echo', {cache: 'no-store'})).status); await pause(300); } return all",
        [200, 200, 200],
    ),
    # Browsers keep public pages from addresses that they take for local ones.
    *(
        Case(
            f"objects of a page at a true address, over {scheme}",
            f"return [await image('{scheme}://img.$.example.org/picture.svg'),"
            f" await text('{scheme}://api.$.example.org:{port}/')]",
            [True, f"port {port}"],
            page=f"{scheme}://in-hosts.example.org{PAGE}",
        )
        for scheme, port in (("http", 8080), ("https", 8443))
    ),
    Case(
        "a name with a private address, on every port",
        "return Promise.all(['https://private.$.example.org/', 'https://private2.$.example.org:8443/',"
        " 'wss://private3.$.example.org:8443/'].map(url => url.startsWith('wss') ?"
        " echoed(url).then(one => one === 'error') : fails(url)))",
        [True, True, True],
    ),
]
SEARCHED = "corp.example.org"
"""The search domain of the clients' network, which is in `dns.except`."""
NO_SUCH_NAME = {"chromium": "ERR_NAME_NOT_RESOLVED", "firefox": "dnsNotFound"}
MOST_ATTEMPTS = 6
"""Firefox tries a connection that ends eleven times, where nobody refuses it."""
NOT_BEHIND_A_PAGE = ["private", "private2", "private3"]


class Tab(Protocol):
    """A browser that a test drives."""

    name: str

    def open(self, url: str) -> str:
        """Loads a page. Returns the error that the browser shows, or nothing."""
        ...

    def run(self, body: str) -> Any:
        """Returns the value of the body of an asynchronous function."""
        ...

    def remote(self) -> str:
        """Returns the address of the server that the page came from."""
        ...


def wrapped(body: str) -> str:
    return f"(async () => {{ {HELPERS} {body} }})()"


@dataclass
class InChromium:
    chromium: Browser
    stack: ExitStack = field(default_factory=ExitStack)
    name: str = "chromium"

    def open(self, url: str) -> str:
        self.stack.close()
        self.tab = self.stack.enter_context(self.chromium.tab())
        error = self.tab.call("Page.navigate", 30, url=url).get("errorText", "")
        if not error:
            self.tab.wait_for_events("Page.loadEventFired", 1, 30)
        return error

    def run(self, body: str) -> Any:
        return self.tab.evaluate(wrapped(body))

    def remote(self) -> str:
        return next(iter(requests_of(self.tab.events()))).remote.rpartition(":")[0]


@dataclass
class InFirefox:
    started: Firefox
    name: str = "firefox"
    requests: list[Request] = field(default_factory=list)

    def open(self, url: str) -> str:
        error, self.requests = self.started.load(url, timeout_s=30)
        return error

    def remote(self) -> str:
        return next(one.remote for one in self.requests if one.status).rpartition(":")[0]

    def run(self, body: str) -> Any:
        return self.started.evaluate(wrapped(body))


def part(name: str, number: int) -> str:
    """Returns the new part of the names of a row in a browser."""
    return f"{name[:2]}{number}"


def site_of(folder: Path) -> Site:
    """Returns the hosts of all rows in all browsers, and those of the further tests."""
    site = Site(https_port=443, http3_port=443)
    (picture := folder / "picture.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>')
    for name in PROBES:
        for number in range(len(CASES)):
            new = part(name, number)
            (worker := folder / f"{new}.js").write_text(WORKER.replace("$", new))
            files = {"/worker.js": worker, "/picture.svg": picture}
            objects: dict[str, Any] = {path: {"file": str(file)} for path, file in files.items()}
            objects["/whole.bin"] = {"bytes": BODY_BYTES, "kind": "jpeg"}
            common: dict[str, Any] = {"special": True, "certificate": [f"*.{new}.example.org"], "objects": objects}
            common["header"] = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*"}
            for host, address in (("page", PAGES), ("same", PAGES), ("img", ANOTHER), ("files", ANOTHER)):
                site.hosts[f"{host}.{new}.example.org"] = {"address": address, "misdirected": 404, **common}
            for host in ("api", "api2", "api3", "api4"):
                site.records[f"{host}.{new}.example.org"] = [WEB_PORTS]
            site.records[f"stun.{new}.example.org"] = [STUN]
            for host in NOT_BEHIND_A_PAGE:
                site.records[f"{host}.{new}.example.org"] = [PRIVATE_ADDRESS]
    (said := folder / "success.txt").write_text("success\n")
    for probe in PROBES.values():
        site.hosts[probe] = {"address": PAGES, "objects": {"/success.txt": {"file": str(said)}}}
    site.hosts["in-hosts.example.org"] = {"address": PAGES, "special": True}
    return site


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstantBed]:  # noqa: ARG001 - order of set-up
    folder = tmp_path_factory.mktemp("uses")
    authority = Authority(folder)
    site = site_of(folder)
    certificate = authority.issue(*(f"*.{part(name, n)}.example.org" for name in PROBES for n in range(len(CASES))))
    more = f"dns: {{ instant: on, except: [{SEARCHED}] }}\n"
    with instant_bed(folder, "geo", site=site, authority=authority, remote_more=more) as standing, standing.kept():
        clients = standing.line.clients
        (hosts := folder / "hosts").write_text(f"127.0.0.1 localhost\n{ANOTHER} in-hosts.example.org\n")
        clients.hosts = hosts
        assert clients.resolv_conf
        with clients.resolv_conf.open("a") as file:
            file.write(f"search {SEARCHED}\n")
        with (
            web_ports(standing.line.internet, WEB_PORTS, certificate),
            stun(standing.line.internet, STUN),
            untouched(standing),
        ):
            yield standing
        assert standing.leaked() == 0


@contextmanager
def untouched(bed: InstantBed) -> Iterator[None]:
    """Servers at a private address, which nobody reaches."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket_in(bed.line.internet)) for _ in (80, 443, 8443)]
        for listener, port in zip(listeners, (80, 443, 8443), strict=True):
            listener.bind((PRIVATE_ADDRESS, port))
            listener.listen()
            listener.setblocking(False)
        yield
        for listener in listeners:
            with pytest.raises(BlockingIOError):
                listener.accept()


@pytest.fixture(scope="module", params=["chromium", pytest.param("firefox", marks=pytest.mark.browsers)])
def tab(request: pytest.FixtureRequest, bed: InstantBed) -> Iterator[Tab]:
    if request.param == "firefox":
        # Firefox takes certificates of a local authority over QUIC only with this.
        quic = {"network.http.http3.disable_when_third_party_roots_found": False}
        with firefox(bed.folder, bed.line.clients, bed.authority, quic) as fox:
            yield InFirefox(fox)
    else:
        need_commands("chromium", "certutil")
        # So does Chromium, for these hosts. No page uses the port.
        hosts = ",".join(f"page.{part('chromium', number)}.example.org:444" for number in range(len(CASES)))
        flags = (f"--origin-to-force-quic-on={hosts}",)
        with browser(bed.folder, bed.line.clients, bed.authority, flags=flags) as chromium:
            driven = InChromium(chromium)
            with driven.stack:
                yield driven


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.use for case in CASES])
def test_a_page_works_from_an_instant_address(bed: InstantBed, tab: Tab, number: int) -> None:
    case, new = CASES[number], part(tab.name, number)
    before = bed.outcomes().get("instant", 0)
    assert tab.open(case.page.replace("$", new)) == ""
    assert tab.run(case.script.replace("$", new)) == case.expected
    assert bed.outcomes()["instant"] > before, "no lookup of the page was instant"


def test_a_name_of_one_label_does_not_exist_though_the_network_has_a_search_domain(tab: Tab) -> None:
    assert NO_SUCH_NAME[tab.name] in tab.open("http://qwxzkjdhrt/")


def test_a_probe_for_captive_portals_gets_the_response_of_its_server(tab: Tab) -> None:
    assert tab.open(f"http://{PROBES[tab.name]}/success.txt") == ""
    assert is_instant(tab.remote())
    assert tab.run("return document.body.innerText.trim()") == "success"


def test_a_name_of_the_hosts_file_keeps_its_address(tab: Tab) -> None:
    assert tab.open(f"https://in-hosts.example.org{PAGE}") == ""
    assert tab.remote() == ANOTHER


def test_a_name_that_does_not_exist_fails_after_a_few_attempts(bed: InstantBed, tab: Tab) -> None:
    name = f"absent-{tab.name}.example.org"
    assert tab.open(f"https://{name}/")
    # The log is in the order of events, and comes some time after them. A last attempt tells that the others are in it.
    last = f"last.{name}"
    (address,) = bed.visit(last).addresses
    bed.curl.get(f"https://{last}/", "--resolve", f"{last}:443:{address}")

    def attempts(of: str) -> int:
        return sum(f'"{of}:443"' in line for line in whole_lines(bed.folder / "ground" / "access.jsonl"))

    wait_for("the line of the last attempt", lambda: attempts(last))
    assert 0 < attempts(name) <= MOST_ATTEMPTS
