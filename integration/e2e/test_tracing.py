"""`tracing`: spans reach the collector, and requests to origins show nothing of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from harness.boxes.desk import WWW, Desk
from harness.boxes.pep import Pep
from harness.host.waiting import wait_for
from harness.origins.http1 import Message
from harness.origins.web import Response, web_server

OWN_TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@contextmanager
def collector() -> Iterator[tuple[int, list[bytes]]]:
    """A port that accepts spans, and the spans that arrived."""
    received: list[bytes] = []

    def accept(request: Message) -> Response:
        received.append(request.target.encode() + b" " + request.body)
        return Response()

    with web_server(accept) as port:
        yield port, received


def test_spans_reach_the_collector_and_origins_see_nothing_of_them(desk: Desk) -> None:
    with collector() as (port, received):
        config = desk.write(tracing={"collector": f"127.0.0.1:{port}", "sample_percent": 100})
        with Pep(config, desk.folder):
            plain = json.loads(desk.get("/_/echo"))
            assert not {name.lower() for name in plain["header"]} & {"traceparent", "tracestate", "x-request-id"}
            carried = json.loads(desk.get("/_/echo", WWW, "-H", f"traceparent: {OWN_TRACE}"))
            headers = {name.lower(): value for name, value in carried["header"].items()}
            assert headers["traceparent"] == [OWN_TRACE], "a page's own trace is the page's"
            wait_for("a span", lambda: any(b"/v1/traces " in one and WWW.encode() in one for one in received), 20)


def test_without_the_key_no_collector_gets_a_trace(desk: Desk) -> None:
    with collector() as (_, received), Pep(desk.write(), desk.folder) as pep:
        desk.get("/_/echo")
        assert "cluster.tracing" not in pep.admin("/clusters")
        assert received == []
