"""The bed the end-to-end tests share: a gateway with Longhaul on it, clients who know nothing of it, many sites."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from urllib.parse import quote, urlsplit

from harness.artifacts import REPOSITORY, Missing
from harness.authority import Authority
from harness.clients import Answer, Curl, DnsAnswer, dig
from harness.gateway import redirected
from harness.origins import Origins, Site
from harness.pages import Page, page_site, saved_page
from harness.pep import PROXY_NAME, Pep, gateway_config, write_config
from harness.topology import (
    GATEWAY,
    LINK_LOCAL_ADDRESS,
    PRIVATE_ADDRESS,
    PROXY,
    RESOLVER,
    SITES,
    Topology,
)

SAVED_PAGE = ("goose3/tests/data/content/test_elmondo1.html", "www.elmundo.es")
"""A real page of 34 objects on 15 hosts, all http, in ISO-8859-15."""

DEMO_HOSTS = ("www.demo.test", "img.demo.test", "cdn.demo.test", "ads.demo.test", "static.demo.test")
LAB = "lab.example.org"
"""Answers made to order (origins: special.go)."""
OBJECTS = "objects.example.org"
"""Any object."""
TODAY = "today.example.org"
"""A site with AAAA and HTTPS records, which lead past whoever steers by A records."""
UNLISTED = "unlisted.example.net"
"""A site whose name nobody steers."""
FORBIDDEN = {
    "private.example.org": PRIVATE_ADDRESS,
    "metadata.example.org": LINK_LOCAL_ADDRESS,
    "loopback.example.org": "127.0.0.1",
    "self.example.org": PROXY,
    "self-lan.example.org": GATEWAY,
}
"""Names that lead where nobody may be taken."""
OWN = (PROXY_NAME, PROXY)
"""Every authority that is the proxy."""


class Bed:
    """Everything together. `pep` runs and the redirect is in force from entry to exit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(folder)
        self.certificate = self.authority.issue(PROXY_NAME).as_dict()
        self.saved_page = _saved_page()
        self.site = self._site()
        self.topology = Topology(folder)
        self.origins = Origins(self.site.write(folder / "site.json"), folder, self.topology.internet)
        self.config = write_config(folder, gateway_config(folder, self.certificate), self._steered())
        self.pep = Pep(self.config, folder, self.topology.gateway, trusted=self.authority.files.cert)
        self._stack = ExitStack()
        self._redirect: ExitStack | None = None

    def __enter__(self) -> Bed:
        with ExitStack() as stack:
            stack.enter_context(self.topology)
            stack.enter_context(self.origins)
            stack.enter_context(self.pep)
            stack.callback(self._unload)
            self._load()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def _site(self) -> Site:
        site = page_site(*([self.saved_page] if self.saved_page else []), ca=self.authority.files.as_dict())
        taken = {host["address"] for host in site.hosts.values()} | {RESOLVER}
        addresses = (str(one) for one in SITES.hosts() if str(one) not in taken)
        for name in DEMO_HOSTS:
            root = REPOSITORY / "integration" / "site" / name
            header = {"Access-Control-Allow-Origin": "*"}
            site.hosts[name] = {"address": next(addresses), "root": str(root), "header": header}
        site.hosts[TODAY] = {
            "address": next(addresses), "generate": True, "aaaa": "2001:db8::5", "https_record": True,
        }  # fmt: skip
        site.hosts[LAB] = {"address": next(addresses), "special": True, "generate": True}
        site.hosts[OBJECTS] = {"address": next(addresses), "generate": True, "special": True}
        site.hosts[UNLISTED] = {"address": next(addresses), "generate": True, "special": True, "aaaa": "2001:db8::6"}
        site.records = {PROXY_NAME: [PROXY], **{name: [address] for name, address in FORBIDDEN.items()}}
        # Listeners stand where nobody may be taken, so that a connection there would be seen.
        site.hosts["canary-private.example.org"] = {"address": PRIVATE_ADDRESS, "generate": True}
        site.hosts["canary-metadata.example.org"] = {"address": LINK_LOCAL_ADDRESS, "generate": True}
        return site

    def _steered(self) -> list[str]:
        return ["demo.test", "example.org", *(self.saved_page.hosts() if self.saved_page else [])]

    def _load(self) -> None:
        stack = ExitStack()
        stack.enter_context(redirected(self.topology.gateway, self.folder))
        self._redirect = stack

    def _unload(self) -> None:
        if self._redirect:
            self._redirect.close()
        self._redirect = None

    @contextmanager
    def without_longhaul(self) -> Iterator[None]:
        """Clients reach the origins directly for a while: the redirect is not loaded."""
        self._unload()
        try:
            yield
        finally:
            self._load()

    @property
    def curl(self) -> Curl:
        """A client's curl, which trusts the bed's authority."""
        return Curl(self.folder, self.topology.clients, "--cacert", str(self.authority.files.cert))

    def original(self, url: str, *options: str) -> Answer:
        """What the origin itself answers, asked beside it."""
        split = urlsplit(url)
        port = split.port or (443 if split.scheme == "https" else 80)
        address = self.site.hosts[split.hostname or ""]["address"]
        curl = Curl(self.folder, self.topology.internet, "--cacert", str(self.authority.files.cert))
        return curl.get(url, "--resolve", f"{split.hostname}:{port}:{address}", *options)

    def dig(self, name: str, kind: str, *options: str) -> DnsAnswer:
        """A client asks its resolver, which is somewhere on the Internet: the redirect brings the question to us."""
        return dig(name, kind, RESOLVER, *options, namespace=self.topology.clients)


def made_to_order(at: str = LAB, /, **order: str | int | list[str]) -> str:
    """The URL on host `at` of an answer made to order; keys as in origins/special.go: `declare="gzip"`."""
    pairs = [(key, one) for key, value in order.items() for one in (value if isinstance(value, list) else [value])]
    return f"http://{at}/_/answer?" + "&".join(f"{key}={quote(str(value), safe='')}" for key, value in pairs)


_fresh = itertools.count(1)


def fresh() -> str:
    """A path nobody asked for before, so that no cache answers."""
    return f"fresh-{next(_fresh)}"


def _saved_page() -> Page | None:
    try:
        return saved_page(*SAVED_PAGE)
    except Missing:
        return None
