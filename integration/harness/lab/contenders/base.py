"""A contender on a link: its processes, and the rules that send clients there for one load."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from harness.browsers.chromium import Browser, browser
from harness.host.processes import Child
from harness.host.waiting import Timeout, wait_for
from harness.net.authority import Authority
from harness.net.namespaces import Namespace
from harness.results.comparison import Contender, Track

from ..line import FURTHER_PROXY_ADDRESSES, Line
from ..links import Link

TABLE = "contender"


@dataclass
class LinkTrack(Track):
    """One bed's namespaces, link and names, and the addresses and ports of it that nobody has yet."""

    line: Line
    link: Link
    authority: Authority
    hosts: list[str]
    """Every name of the sites."""
    https: bool = True
    """Servers speak https."""
    as_shipped: bool = False
    """Browsers have https-first and QUIC on."""
    _addresses: Iterator[str] = field(default_factory=lambda: iter(FURTHER_PROXY_ADDRESSES))
    _ports: Iterator[int] = field(default_factory=lambda: itertools.count(20100))

    def take_addresses(self, count: int) -> list[str]:
        """Addresses of the gateway that no other contender has."""
        return list(itertools.islice(self._addresses, count))

    def take_port(self) -> int:
        """A port that no other contender has."""
        return next(self._ports)

    def browser(self, *flags: str) -> AbstractContextManager[Browser]:
        """Returns a fresh browser of the clients."""
        return browser(self.folder, self.line.clients, self.authority, flags=flags, as_shipped=self.as_shipped)


class LinkContender(Contender[LinkTrack]):
    """One way from the browser over the link to the origins. Its processes run for as long as the bed stands."""

    title: str
    """In tables and plots."""
    about: str
    """A sentence for the report: its kind and its settings."""
    schemes: tuple[str, ...] = ("http", "https")
    """The schemes that it handles."""
    settles: bool = True
    """Each load waits until the link is quiet."""
    tried: bool = True
    """The bed sends a small request through it before any load, so that its first connections are open. False if it
    starts for each load."""
    watches: int = 0
    """Inotify instances that its processes open."""

    def expecting(
        self,
        track: LinkTrack,  # noqa: ARG002 - what others need
        url: str,  # noqa: ARG002
        visit: Callable[[LinkContender], None],  # noqa: ARG002
    ) -> LinkContender:
        """Returns the contender for the next load of a page. One that carries the page on a second day may need a
        visit of the day before. `visit` loads the page by another contender, and measures nothing."""
        return self

    @abstractmethod
    def engaged(self, track: LinkTrack) -> AbstractContextManager[Any]:
        """A context manager: clients are sent to it, for one load."""

    def flags(self, track: LinkTrack) -> tuple[str, ...]:  # noqa: ARG002 - what others need
        """Further flags of the browser."""
        return ()


@contextmanager
def rules(namespace: Namespace, *chains: str, table: str = TABLE) -> Iterator[None]:
    """A table of packet rules of our own, for a while.

    Before and after, the packet filter forgets all connections. A browser's last packets may be lost with the link's
    queue, and its connection then stays known for days. A new connection from the same port would go where that one
    went: to another contender."""
    text = "\n".join((f"table ip {table} {{", *chains, "}"))
    namespace.run("sh", "-c", 'printf "%s" "$0" | nft -f -', text)
    try:
        namespace.forget_connections()
        yield
    finally:
        namespace.run("nft", "delete", "table", "ip", table)
        namespace.forget_connections()


def intercept(device: str, *lines: str, own: tuple[str, ...] = ()) -> str:
    """A chain that sends what comes in on `device` elsewhere; what is meant for the box itself meets `own` only."""
    body, first = "\n".join(lines), "\n".join(own)
    return f"""chain intercept {{
        type nat hook prerouting priority dstnat; policy accept;
        iifname != "{device}" accept
        {first}
        fib daddr type local accept
        {body}
    }}"""


def wait_for_port(namespace: Namespace, port: int, child: Child) -> None:
    """Returns once something listens on a port of the namespace. Raises if the program ends before."""

    def listens() -> bool:
        if child.process.poll() is not None:
            raise Timeout(f"it ended: {child.output()[-2000:]}")
        return f":{port} " in namespace.run("ss", "-Hltn").stdout

    wait_for(f"a program on port {port}", listens, 20.0)


@contextmanager
def sysctls(namespace: Namespace, **values: int | str) -> Iterator[None]:
    """Settings below net.ipv4 for a while."""
    before = {key: namespace.run("sysctl", "-n", f"net.ipv4.{key}").stdout.strip() for key in values}
    for key, value in values.items():
        namespace.sysctl(f"net.ipv4.{key}", value)
    try:
        yield
    finally:
        for key, value in before.items():
            namespace.sysctl(f"net.ipv4.{key}", value)
