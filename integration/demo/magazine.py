"""The project's own page: the front page of a magazine, with the hosts, sizes and kinds of objects of an ordinary one.

Its markup, style sheets and pictures belong to this project. The origins generate further scripts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template

from noise_pictures import picture

from harness.origins.program import Site

FOLDER = Path(__file__).with_name("magazine")
HOST = "www.meridian.example.org"
"""Browsers try https first for a public name alone, so names below .test would not do."""
STATIC, ADS, COUNTER, WIDGETS = (
    "static.meridian.example.org", "ads.harbour.example.net", "count.tally.example.com", "w.talkback.example.net",
)  # fmt: skip
PICTURE_HOSTS = ("p1.meridian.example.net", "p2.meridian.example.net", "p3.meridian.example.net")

SCRIPTS = {
    # host, path: bytes after compression
    (STATIC, "/frame.js"): 42_000,
    (STATIC, "/site.js"): 28_000,
    (WIDGETS, "/talk.js"): 36_000,
    (WIDGETS, "/talk-count.js"): 9_000,
    (COUNTER, "/tally.js"): 18_000,
    (ADS, "/slots.js"): 31_000,
    (ADS, "/fill.js"): 14_000,
}

LEAD = ("lead", 1120, 640)
CARD_SIZE = (640, 400)
ADVERT_SIZE = (600, 240)


@dataclass(frozen=True)
class Card:
    """One story on the front page."""

    section: str
    title: str
    text: str


def cards() -> list[Card]:
    """Returns the stories. The file has one in each line."""
    lines = (FOLDER / "stories.txt").read_text().splitlines()
    return [Card(*(part.strip() for part in line.split("|"))) for line in lines if line]


class Magazine:
    """The page as the lab serves pages, over http and over https. Its own references name no scheme."""

    name = "magazine"

    def __init__(self) -> None:
        """Lists the page's objects. `add_to` draws them."""
        hosts = itertools.cycle(PICTURE_HOSTS)
        sizes = {LEAD[0]: LEAD[1:]} | {f"story-{number}": CARD_SIZE for number in range(len(cards()))}
        self._pictures = {(next(hosts), f"/{name}.jpg"): size for name, size in sizes.items()}
        self._pictures |= {(ADS, f"/advert-{number}.jpg"): ADVERT_SIZE for number in range(2)}

    @property
    def hosts(self) -> list[str]:
        """Returns its hosts, its own first."""
        return [HOST, STATIC, *PICTURE_HOSTS, ADS, COUNTER, WIDGETS]

    def url(self, scheme: str) -> str:
        """Returns its URL for one scheme."""
        return f"{scheme}://{HOST}/"

    def urls(self, scheme: str) -> list[str]:
        """Returns the URLs of the page and all its objects."""
        own = [(STATIC, "/meridian.css"), (STATIC, "/type.css"), (STATIC, "/waves.svg")]
        return [self.url(scheme), *(f"{scheme}://{host}{path}" for host, path in (*own, *self._pictures, *SCRIPTS))]

    def add_to(self, site: Site, folder: Path, addresses: Iterator[str]) -> None:
        """Adds its hosts to the site, and writes its files below `folder`."""
        for host in self.hosts:
            root = folder / "magazine" / host
            root.mkdir(parents=True)
            scripts = {
                path: {"kind": "script", "transfer_bytes": size} for (own, path), size in SCRIPTS.items() if own == host
            }
            site.hosts[host] = {"address": next(addresses), "root": str(root), "objects": scripts}
        for name in ("meridian.css", "type.css", "waves.svg"):
            (folder / "magazine" / STATIC / name).write_bytes((FOLDER / name).read_bytes())
        for (host, path), size in self._pictures.items():
            (folder / "magazine" / host / path[1:]).write_bytes(picture(*size, seed=path))
        (folder / "magazine" / HOST / "index.html").write_text(self.markup())

    def markup(self) -> str:
        """Returns the markup of the page."""
        pictures = [f"//{host}{path}" for host, path in self._pictures]
        lead, stories, adverts = pictures[0], pictures[1:-2], pictures[-2:]
        story = Template((FOLDER / "story.html").read_text())
        width, height = CARD_SIZE
        found = [
            story.substitute(
                picture=url, width=width, height=height, section=one.section, title=one.title, text=one.text
            )
            for one, url in zip(cards(), stories, strict=True)
        ]
        page = Template((FOLDER / "page.html").read_text())
        return page.substitute(
            static=f"//{STATIC}", ads=f"//{ADS}", counter=f"//{COUNTER}", widgets=f"//{WIDGETS}", lead=lead,
            first="".join(found[:8]), rest="".join(found[8:]), advert=adverts[0], advert_below=adverts[1],
        )  # fmt: skip
