"""The counters of a remote's CoreDNS."""

from __future__ import annotations

from bench.names_pairs import Way
from harness.boxes.pair import Pair
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


def responses_by_way(both: Pair) -> dict[str, int]:
    """Returns the responses that came to a remote by streams of the pipe, and by connections of their own."""
    metric = "coredns_lookups_responses_total"
    return {way: int(counted(both.remote, metric, way=way)) for way in ("stream", "connection")}


def responses(way: Way) -> tuple[int, int]:
    """Returns the same counts as numbers. Both are 0 without a pair."""
    if not way.pair:
        return 0, 0
    by_way = responses_by_way(way.pair)
    return by_way["stream"], by_way["connection"]
