"""Longhaul as a pair, one box at each end of the link."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.boxes.pair import REDIRECTS, Ends, running, write_pair

from .. import watches
from ..line import FAR, NEAR_DEVICE, NEAR_HOME
from ..quiet import wait_until_quiet
from .base import LinkContender, LinkTrack, intercept, rules, sysctls
from .longhaul import receive_buffers, route_options

NOBODY = "nobody.example.org"
"""The only name of a list that steers nothing. An empty list is refused."""


class LonghaulPair(LinkContender):
    """Role `remote` on the near box, role `ground` on the gateway. Both have their defaults, except that bundling is
    off. A pair that bundles caches the objects for the next visitor, and a repeated load would not be a first visit."""

    name = "longhaul-pair"
    watches = watches.PAIR
    title = "Longhaul, pair"
    about = (
        "Longhaul with a box at each end of the link, both with their defaults but `page.bundle`, which is off, so "
        "that no load gains by an earlier one (the experiment one-flight has it on): names are steered to the near "
        "box, requests share one pipe, TLS takes connections that are open already."
    )

    page: dict[str, Any] | None = {"bundle": False}  # noqa: RUF012 - never changed
    """The section `page` of both files."""
    compress: dict[str, Any] | None = None
    """The section `compress` of the ground."""
    steers: bool = True
    """All names are on the list, so the near box resolves them at once."""

    @contextmanager
    def started(self, track: LinkTrack) -> Iterator[None]:
        """Both boxes run."""
        with self._running(track):
            # Envoy counts a connection from its first packet, before it has a window. All connections are open only
            # when the link is quiet.
            assert track.line.link
            wait_until_quiet(track.line.link, track.link.rtt_ms)
            track.line.set_near_route()
            yield

    @contextmanager
    def _running(self, track: LinkTrack) -> Iterator[None]:
        """Both boxes run, and their pipe is open."""
        ends = Ends(track.line.near, NEAR_HOME, track.line.gateway, FAR)
        trusted = track.authority.files.cert
        folder, setting = self._folder(track), track.link.setting
        # A connection takes the windows of its route when it opens. The connections of a pair stay open, so the route
        # is set before them.
        changes = {"page": self.page, "compress": self.compress}
        files = write_pair(folder, ends, setting, steered=track.hosts if self.steers else [NOBODY], **changes)
        track.line.set_near_route(*route_options(files.remote))
        buffers = receive_buffers(files.remote, track.line.near, NEAR_DEVICE)
        with (
            sysctls(track.line.near, **buffers),
            running(files, ends, trusted=trusted) as both,
        ):
            both.until_piped()
            yield

    @contextmanager
    def engaged(self, track: LinkTrack) -> Iterator[None]:
        """The near box takes web and DNS traffic. Both ends of the link have the derived windows."""
        options = route_options(self._folder(track) / "remote" / "longhaul.yaml")
        with (
            rules(track.line.near, intercept(NEAR_DEVICE, *REDIRECTS)),
            sysctls(track.line.near, tcp_slow_start_after_idle=0),
            sysctls(track.line.gateway, tcp_slow_start_after_idle=0),
        ):
            track.line.set_near_route(*options)
            try:
                yield
            finally:
                track.line.set_near_route()

    def remote_state(self, track: LinkTrack) -> Path:
        """Returns the state folder of the remote."""
        return self._folder(track) / "remote" / "state"

    def _folder(self, track: LinkTrack) -> Path:
        return track.folder_of("pair")


class LonghaulPairBundling(LonghaulPair):
    """The same pair, which sends the objects of pages before the browser requests them."""

    name = "longhaul-pair-bundling"
    title = "Longhaul, pair, bundling"
    about = "Longhaul's pair with `page: { bundle: true }` at both ends: objects of http pages are sent unasked."
    schemes = ("http",)
    page = {"bundle": True}  # noqa: RUF012 - never changed


class LonghaulPairDefault(LonghaulPair):
    """The same, as an operator gets it."""

    name = "longhaul-pair-default"
    title = "Longhaul, pair, defaults"
    about = (
        "Longhaul's pair with its defaults: on links where it pays, objects of http pages are sent before they are "
        "requested, and kept for the next visitor."
    )
    page = None


class LonghaulPairStarted(LonghaulPairDefault):
    """The same at its first moment: each load begins when a pair that has just started has its pipe."""

    name = "longhaul-pair-started"
    title = "Longhaul, pair, just started"
    about = "Longhaul's pair with its defaults. Each load begins as soon as a pair that has just started has its pipe."
    settles = False
    tried = False

    @contextmanager
    def started(self, track: LinkTrack) -> Iterator[None]:  # noqa: ARG002 - each load starts its own
        """Nothing runs between loads."""
        yield

    @contextmanager
    def engaged(self, track: LinkTrack) -> Iterator[None]:
        """Both boxes start, and take the traffic."""
        shutil.rmtree(self._folder(track), ignore_errors=True)
        with self._running(track), super().engaged(track):
            yield


class LonghaulPairLevers(LonghaulPair):
    """The default pair with some of the levers that make http bodies smaller: br, differences between pages, and
    smaller images. Without any, text crosses the link in gzip."""

    schemes = ("http",)

    def __init__(self, name: str, title: str, *levers: str) -> None:
        self.name, self.title = name, title
        used = f"only {levers[0]}" if levers else "none of them"
        self.about = f"Longhaul's pair with its defaults, but of br, differences and smaller images {used}."
        self.compress = None if "br" in levers else {"br": "off"}
        off = {"delta": "differences", "images": "smaller images"}
        self.page = {key: "off" for key, lever in off.items() if lever not in levers}


class LonghaulPairUnlisted(LonghaulPair):
    """The same, with no name on its list."""

    name = "longhaul-pair-unlisted"
    title = "Longhaul, pair, no name listed"
    about = (
        "Longhaul's pair with an empty list: clients get the origins' own addresses, and what they send there is "
        "intercepted. A listed name has the near box's address, where no QUIC is spoken."
    )
    schemes = ("https",)
    steers = False


def pair_contenders() -> tuple[LinkContender, ...]:
    """The pair."""
    return (
        LonghaulPair(), LonghaulPairUnlisted(), LonghaulPairBundling(), LonghaulPairDefault(),
        LonghaulPairStarted(),
        LonghaulPairLevers("longhaul-pair-gzip", "Longhaul, pair, gzip"),
        LonghaulPairLevers("longhaul-pair-br", "Longhaul, pair, br", "br"),
        LonghaulPairLevers("longhaul-pair-deltas", "Longhaul, pair, differences", "differences"),
        LonghaulPairLevers("longhaul-pair-images", "Longhaul, pair, smaller images", "smaller images"),
    )  # fmt: skip
