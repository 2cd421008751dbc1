"""Longhaul's pair as its operator sets it up: on the first visit of a page, and on the second day.

The files are those of `longhaul pair init`, which list no name, and the packet rules those of `longhaul host`. Both
boxes run during a load alone. So nothing is looked up before it, and nothing else is known to them.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from .. import names_night, watches
from ..init_pair import pair_of_init
from .base import LinkContender, LinkTrack

NIGHT_S = 8 * 3600


@dataclass(frozen=True)
class PairOfInit(LinkContender):
    """A pair for one page. Each page has boxes of its own, which no other page has taught anything."""

    url: str = ""
    """The page that it carries."""
    remote_more: str = ""
    """Further sections of the remote's file."""
    tried = False
    watches = watches.PAIR

    @contextmanager
    def started(self, track: LinkTrack) -> Iterator[None]:  # noqa: ARG002 - each load starts its own
        """Nothing runs between loads."""
        yield

    def expecting(
        self,
        track: LinkTrack,  # noqa: ARG002 - a second day looks for a first one
        url: str,
        visit: Callable[[LinkContender], None],  # noqa: ARG002
    ) -> LinkContender:
        """Returns the pair of this page."""
        return replace(self, url=url)

    def home(self, track: LinkTrack) -> Path:
        """Returns the folder of both boxes. Its name is short, because the names of Unix sockets are."""
        return track.folder_of(f"init-{zlib.crc32(self.url.encode()):08x}")

    def state(self, track: LinkTrack) -> Path:
        """Returns the state folder of the remote."""
        return self.home(track) / "remote" / "state"

    @contextmanager
    def running(self, track: LinkTrack) -> Iterator[None]:
        """Both boxes start and take the traffic."""
        near = track.line.near
        # Connections of a load by another way may be known, and would go that way.
        near.forget_connections()
        trusted = track.authority.files.cert
        with pair_of_init(
            self.home(track), track.line, track.link.setting, trusted=trusted, remote_more=self.remote_more
        ):
            yield
        near.forget_connections()


class FirstVisit(PairOfInit):
    """A pair whose boxes have just started, and know nothing."""

    name = "longhaul-pair-first-visit"
    title = "Longhaul, pair, first visit"
    about = (
        "Longhaul's pair with the files of `longhaul pair init` and the settings of `longhaul host`. No name is "
        "listed. Both boxes start with empty folders for each load."
    )

    @contextmanager
    def engaged(self, track: LinkTrack) -> Iterator[None]:
        """Both boxes take the traffic. They know nothing."""
        home = self.home(track)
        shutil.rmtree(home)
        home.mkdir()
        with self.running(track):
            if (self.state(track) / names_night.KEPT).exists():
                raise RuntimeError("a remote that has just started remembers names")
            yield


class SecondDay(PairOfInit):
    """The pair of a first visit after a night: both boxes restarted, and eight hours passed for the names."""

    name = "longhaul-pair-second-day"
    title = "Longhaul, pair, second day"
    about = (
        "The pair of the first visit, on the next day. Both boxes were restarted, and the remote's memory of names is "
        "eight hours older. Over http, the ground has cached objects of the page. Those at the remote were in memory."
    )

    def expecting(self, track: LinkTrack, url: str, visit: Callable[[LinkContender], None]) -> LinkContender:
        """Returns the pair of this page, after a first visit if there was none."""
        own = replace(self, url=url)
        if not (own.state(track) / names_night.KEPT).exists():
            visit(FirstVisit(url))
        return own

    @contextmanager
    def engaged(self, track: LinkTrack) -> Iterator[None]:
        """Both boxes take the traffic. Afterwards their folders are deleted, because a third day is none."""
        if not names_night.age(self.state(track), NIGHT_S):
            raise RuntimeError("the remote remembers no name of the day before")
        with self.running(track):
            yield
        shutil.rmtree(self.home(track))


def init_pair_contenders() -> tuple[LinkContender, ...]:
    """The pair of an operator, on both days."""
    return FirstVisit(), SecondDay()
