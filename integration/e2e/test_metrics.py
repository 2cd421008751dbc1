"""What an operator sees: every documented metric is there, every one of ours is documented, every panel has data."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from e2e.bed import OBJECTS, fresh, made_to_order
from harness.artifacts import REPOSITORY, need_commands
from harness.bed import PROXY_NAME, Bed
from harness.processes import Child
from harness.waiting import wait_for

DOCUMENT = REPOSITORY / "envoy-config" / "METRICS.md"
DASHBOARD = REPOSITORY / "deploy" / "dashboards" / "longhaul.json"
ADMIN, COREDNS, PROMETHEUS = "127.0.0.1:9901", "127.0.0.1:9153", "127.0.0.1:9090"

AFTER_A_FAILURE = {"coredns_longhaul_healthcheck_failures_total", "coredns_longhaul_reload_failures_total"}
"""Documented as not there before the first failure."""


def use(bed: Bed) -> None:
    """A bit of everything that is counted."""
    page = made_to_order(host=OBJECTS)
    assert bed.curl.get(page, "-H", "Accept-Encoding: br").status == 200
    for _ in range(2):
        assert bed.curl.get(f"http://{OBJECTS}/kept.png?size=4000").status == 200
    for kind in ("A", "AAAA", "HTTPS"):
        bed.dig(OBJECTS, kind)


def page_of(bed: Bed, address: str, path: str) -> str:
    return bed.pep.admin(path, address)


@pytest.fixture(scope="module")
def live(bed: Bed) -> dict[str, list[set[str]]]:
    """Both live pages: for each name, the labels of each of its samples."""
    use(bed)
    text = page_of(bed, ADMIN, "/stats/prometheus") + page_of(bed, COREDNS, "/metrics")
    found: dict[str, list[set[str]]] = {}
    for name, labels in re.findall(r"^([a-z][\w:]*)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        found.setdefault(name, []).append(set(re.findall(r'(\w+)="', labels)))
    return found


def documented() -> list[tuple[str, set[str]]]:
    metrics, _, _ = DOCUMENT.read_text().partition("## The access log")
    # An edge has none of a pair's.
    metrics = re.sub(r"^## A pair.*?(?=^## )", "", metrics, flags=re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|", metrics, re.MULTILINE)
    return [(name, set(re.findall(r"`(\w+)`", labels))) for name, labels in rows]


def test_every_documented_metric_is_there_with_its_labels(live: dict[str, list[set[str]]]) -> None:
    names = documented()
    assert len(names) > 40, "the tables are read"
    wrong = [name for name, _ in names if name not in live and name not in AFTER_A_FAILURE]
    assert not wrong
    for name, labels in names:
        assert all(labels <= sample for sample in live.get(name, [])), (name, labels, live[name][0])


def test_every_metric_of_ours_is_documented(live: dict[str, list[set[str]]]) -> None:
    known = dict(documented())
    ours = {name for name in live if name.startswith(("longhaul_", "coredns_longhaul_"))}
    assert len(ours) > 15
    assert sorted(ours - known.keys()) == []


@pytest.fixture(scope="module")
def prometheus(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """Prometheus on the gateway, configured as the document says, with enough scrapes for a rate."""
    need_commands("prometheus")
    folder = tmp_path_factory.mktemp("prometheus")
    config = re.search(r"^```yaml\n(scrape_configs:.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert config
    (folder / "prometheus.yaml").write_text("global: { scrape_interval: 1s, scrape_timeout: 1s }\n" + config[1])
    command = [
        "prometheus", f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={PROMETHEUS}",
    ]  # fmt: skip
    child = Child(bed.topology.gateway.inside(command), folder / "prometheus.log")
    try:
        child.wait_for_output("Server is ready")
        for job in ("longhaul-envoy", "longhaul-coredns"):
            wait_for(
                f"three scrapes of {job}",
                lambda job=job: (use(bed), scrapes(bed, job) >= 3)[1],
                timeout_s=60,
            )
        yield bed
    finally:
        child.stop()


def scrapes(bed: Bed, job: str) -> float:
    result = query(bed, f'count_over_time(up{{job="{job}"}}[1m])')
    return float(result[0]["value"][1]) if result else 0.0


def query(bed: Bed, expression: str) -> list[dict]:
    answer = json.loads(page_of(bed, PROMETHEUS, f"/api/v1/query?query={quote(expression)}&time={time.time():.3f}"))
    assert answer["status"] == "success", answer
    return answer["data"]["result"]


def panels() -> list[tuple[str, str, str]]:
    """Title, expression and legend of every query."""
    dashboard = json.loads(Path(DASHBOARD).read_text())
    return [
        (panel["title"], target["expr"], target["legendFormat"])
        for panel in dashboard["panels"]
        for target in panel.get("targets", [])
    ]


def test_every_query_of_the_dashboard_has_data_and_the_labels_its_legend_shows(prometheus: Bed) -> None:
    queries = panels()
    assert len(queries) > 30
    for title, expression, legend in queries:
        expression = expression.replace("$__rate_interval", "30s")
        result = wait_for(f"data of {title}: {expression}", lambda text=expression: query(prometheus, text))
        for label in re.findall(r"\{\{(\w+)\}\}", legend):
            assert all(one["metric"].get(label) for one in result), f"{title}: no {label} in {result}"


def test_a_query_for_what_is_not_there_has_no_data(prometheus: Bed) -> None:
    assert query(prometheus, "sum(rate(longhaul_url_rewrite_no_such_total[30s]))") == []


def test_the_access_log_says_what_became_of_a_pages_urls(bed: Bed) -> None:
    mark = fresh()
    page = made_to_order(host=OBJECTS, header=f"X-Mark:{mark}")
    got = bed.curl.get(page)
    line = wait_for(
        "the page in the log",
        lambda: next((one for one in bed.pep.requests() if mark in one.get("path", "")), None),
    )
    assert int(line["moved"]) == got.body.count(f"https://{PROXY_NAME}/{OBJECTS}/".encode())
    assert int(line["page_bytes"]) == len(bed.original(page).body)
    assert (line["hosts_saved"], line["hop"]) == ("1", "edge_http")
    assert "bail_out" not in line
    bed.curl.get(f"http://{OBJECTS}/{mark}.png")
    asked = wait_for(
        "the object in the log",
        lambda: next((one for one in bed.pep.requests() if one.get("path") == f"/{mark}.png"), None),
    )
    assert "moved" not in asked, "an object is no page"
