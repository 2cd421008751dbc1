"""The counters of a remote's CoreDNS."""

from __future__ import annotations

from bench.names_pairs import Way
from harness.boxes.pep import Pep, parse_metrics

METRICS = "http://127.0.0.1:9153/metrics"


def counted(remote: Pep, metric: str, **labels: str) -> float:
    """Returns the sum of a metric of CoreDNS, over all labels that are not named."""
    wanted = [f'{name}="{value}"' for name, value in labels.items()]
    return sum(
        value
        for name, value in parse_metrics(remote.page(METRICS)).items()
        if name.partition("{")[0] == metric and all(one in name for one in wanted)
    )


def responses(way: Way) -> tuple[int, int]:
    """Returns the responses that came to a remote by streams of the pipe, and by connections of their own."""
    if not way.pair:
        return 0, 0
    metric = "coredns_lookups_responses_total"
    by_stream, by_connection = (counted(way.pair.remote, metric, way=kind) for kind in ("stream", "connection"))
    return int(by_stream), int(by_connection)
