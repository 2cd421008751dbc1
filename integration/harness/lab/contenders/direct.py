"""No proxy at all: the gateway routes."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from .base import LinkContender, LinkTrack


class Direct(LinkContender):
    """The baseline of every comparison."""

    name = "direct"
    title = "direct"
    about = "No proxy: packets are routed to the origins, names are asked of the resolver behind the link."

    def started(self, track: LinkTrack) -> AbstractContextManager[None]:  # noqa: ARG002 - nothing to start
        """Nothing runs."""
        return nullcontext()

    def engaged(self, track: LinkTrack) -> AbstractContextManager[None]:  # noqa: ARG002 - nothing to set
        """Nothing is set."""
        return nullcontext()
