"""Sites whose names share a certificate, a server, both or neither, for loads in a browser.

A browser sends the requests of two names over one HTTP/2 connection if the certificate of the first one covers both and
both have a common address (RFC 9113 section 9.1.1).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from harness.browsers.chromium import Request

from .program import Site

ORDERS = ("page first", "image first")
"""The page is at the first host of its site, or at the second one. The images are at all others."""
PICTURE = "/picture.jpg"
PICTURE_BYTES = 3000


@dataclass(frozen=True)
class Kind:
    """A kind of site. `{}` stands for the part of the names that is new in each load."""

    name: str
    about: str
    hosts: tuple[str, ...]
    servers: tuple[int, ...]
    """The number of each host's server."""
    certificate: tuple[str, ...] = ("{}.example.net", "*.{}.example.net")
    """The names in the certificate of all hosts. Without any, each host has its own."""
    misdirected: HTTPStatus = HTTPStatus.NOT_FOUND
    """The response of a server to names that it does not have."""


WWW, IMAGES = "www.{}.example.net", "img.{}.example.net"
OTHER_DOMAIN = "img.{}-other.example.org"
FIVE = (WWW, *(f"img{number}.{{}}.example.net" for number in range(1, 5)))
KINDS = (
    Kind("a", "a wildcard, two servers, 404", (WWW, IMAGES), (0, 1)),
    Kind("b", "a wildcard, two servers, 421", (WWW, IMAGES), (0, 1), misdirected=HTTPStatus.MISDIRECTED_REQUEST),
    Kind("c", "a wildcard, five servers, 404", FIVE, (0, 1, 2, 3, 4)),
    Kind("d", "two domains, two servers, 404", (WWW, OTHER_DOMAIN), (0, 1), (WWW, OTHER_DOMAIN)),
    Kind("e", "a wildcard, one server", (WWW, IMAGES), (0, 0)),
    Kind("f", "two certificates, two servers", (WWW, IMAGES), (0, 1), ()),
)
"""The last two are controls: their names may have one address."""


@dataclass(frozen=True)
class SharedPage:
    """A page of a site of its own."""

    kind: Kind
    order: str
    site: str
    """The part of the names that no other page has."""

    @property
    def hosts(self) -> list[str]:
        """Its names, that of the page first."""
        names = [name.format(self.site) for name in self.kind.hosts]
        return names if self.order == ORDERS[0] else [names[1], names[0], *names[2:]]

    @property
    def urls(self) -> list[str]:
        """The page and its images."""
        page, *images = self.hosts
        return [f"https://{page}/", *(f"https://{name}{PICTURE}" for name in images)]

    def add_to(self, site: Site, folder: Path) -> None:
        """Gives its hosts a place in the site, and writes its markup below `folder`."""
        markup = folder / f"{self.site}.html"
        images = "".join(f'<img src="{url}" width="40" height="30" alt="">\n' for url in self.urls[1:])
        icon = '<link rel="icon" href="data:,">'  # or the browser asks for one
        markup.write_text(f"<!doctype html><title>{self.site}</title>{icon}\n{images}")
        for name, server in zip(self.kind.hosts, self.kind.servers, strict=True):
            site.hosts[name.format(self.site)] = {
                "address": address(server, self.kind.misdirected),
                "certificate": [one.format(self.site) for one in self.kind.certificate],
                "misdirected": self.kind.misdirected,
                "objects": {"/": {"file": str(markup)}, PICTURE: {"kind": "jpeg", "bytes": PICTURE_BYTES}},
            }

    def problems(self, requests: Iterable[Request]) -> Iterator[str]:
        """Yields a line for each object that did not load with a status of 200."""
        found = {one.url: one for one in requests}
        for url in self.urls:
            one = found.get(url)
            if one is None:
                yield f"{url}: no request"
            elif one.status != HTTPStatus.OK or not one.finished:
                yield f"{url}: {one.failure or one.status or 'no response'}"


def address(server: int, misdirected: HTTPStatus) -> str:
    """Returns the address of a server. All servers at one address respond alike."""
    return f"203.0.113.{100 + server + (10 if misdirected == HTTPStatus.MISDIRECTED_REQUEST else 0)}"


def shared_pages(count: int) -> list[SharedPage]:
    """Returns pages of all kinds in both orders, in turn."""
    turns = itertools.cycle(itertools.product(KINDS, ORDERS))
    return [SharedPage(kind, order, f"s{number}") for number, (kind, order) in zip(range(count), turns, strict=False)]
