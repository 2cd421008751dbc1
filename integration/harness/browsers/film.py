"""Films a page while it loads: the frames that the browser paints, with their times.

The browser sends a frame when the picture changes, so that a page that waits costs nothing.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from harness.host.waiting import Timeout

from .devtools import DevToolsError

FRAME = "Page.screencastFrame"
WIDEST_PX = 640
QUALITY = 85
"""The quality of the JPEG, in percent."""
PATIENCE_S = 0.5
"""The longest time between two checks for the end of the film."""


class Window(Protocol):
    """The filmed object: a tab of the browser."""

    def call(self, method: str, timeout_s: float = ..., **params: Any) -> dict[str, Any]:
        """Sends a DevTools call."""

    def events(self) -> list[dict[str, Any]]:
        """Returns the events so far."""

    def wait_for_events(self, method: str, count: int, timeout_s: float) -> None:
        """Waits until there are so many events of a method."""


@dataclass(frozen=True)
class Frame:
    """A picture of the window."""

    at_ms: float
    """The time after the start of the navigation. A frame of the blank page before it has a time below zero."""
    jpeg: bytes


@contextmanager
def filmed(tab: Window) -> Iterator[None]:
    """Films the tab. `frames` finds the film among the events of the tab."""
    over = threading.Event()
    camera = threading.Thread(target=_confirm, args=(tab, over), daemon=True)
    tab.call("Page.startScreencast", format="jpeg", quality=QUALITY, maxWidth=WIDEST_PX, everyNthFrame=1)
    camera.start()
    try:
        yield
    finally:
        over.set()
        camera.join()
        with suppress(DevToolsError, Timeout):
            tab.call("Page.stopScreencast")


def frames(events: Sequence[dict[str, Any]], begin_s: float) -> list[Frame]:
    """The film, in order. `begin_s` is the start of the navigation in seconds since 1970."""
    shots = (event["params"] for event in events if event["method"] == FRAME)
    film = [Frame((shot["metadata"]["timestamp"] - begin_s) * 1000, base64.b64decode(shot["data"])) for shot in shots]
    return sorted(film, key=lambda frame: frame.at_ms)


def frame_at(film: Sequence[Frame], at_ms: float) -> Frame | None:
    """The frame that a visitor sees at a time; None where the window is still blank."""
    shown = [frame for frame in film if frame.at_ms <= at_ms]
    return shown[-1] if shown else None


def _confirm(tab: Window, over: threading.Event) -> None:
    """Confirms each frame: the browser sends the next ones only then."""
    confirmed = 0
    while not over.is_set():
        tab.wait_for_events(FRAME, confirmed + 1, PATIENCE_S)
        shots = [event["params"] for event in tab.events() if event["method"] == FRAME]
        for shot in shots[confirmed:]:
            with suppress(DevToolsError, Timeout):
                tab.call("Page.screencastFrameAck", sessionId=shot["sessionId"])
        confirmed = len(shots)
