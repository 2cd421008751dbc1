"""Monitoring: every documented metric exists, every metric of Longhaul is documented, and every panel has data."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.bed import OBJECTS, fresh, made_to_order
from harness.boxes.bed import PROXY_NAME, Bed
from harness.boxes.pep import IS_NATIVE
from harness.delivery.dashboards import ALERTS, FLEET, FLEET_RULES, Prometheus, has_data, panels, running
from harness.host.artifacts import REPOSITORY, need_commands
from harness.host.waiting import wait_for

DOCUMENT = REPOSITORY / "envoy-config" / "METRICS.md"
PAGE = "http://127.0.0.1:9153/metrics"

AFTER_A_FAILURE = {"coredns_longhaul_healthcheck_failures_total", "coredns_longhaul_reload_failures_total"}
"""Documented as absent before the first failure."""
OF_NATIVE_FILTERS = {"longhaul_object_reader_requests_total"}


def use(bed: Bed) -> None:
    """Uses everything that is counted at least once."""
    page = made_to_order(host=OBJECTS)
    assert bed.curl.get(page, "-H", "Accept-Encoding: br").status == 200
    for _ in range(2):
        assert bed.curl.get(f"http://{OBJECTS}/kept.png?size=4000").status == 200
    for kind in ("A", "AAAA", "HTTPS"):
        bed.dig(OBJECTS, kind)
    bed.dig("_dns.resolver.arpa", "SVCB")


@pytest.fixture(scope="module")
def live(bed: Bed) -> dict[str, list[set[str]]]:
    """Returns the samples of the live page: the labels of each sample, by name."""
    use(bed)
    text = bed.pep.page(PAGE)
    found: dict[str, list[set[str]]] = {}
    for name, labels in re.findall(r"^([a-z][\w:]*)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        found.setdefault(name, []).append(set(re.findall(r'(\w+)="', labels)))
    return found


def documented() -> list[tuple[str, set[str]]]:
    metrics, _, _ = DOCUMENT.read_text().partition("## The access log")
    # This edge belongs to no pair, has no groups, one link, no parent caches, and recodes no images. It has one engine.
    others = "A pair|Groups|Several links|Nodes of|Images" + ("" if IS_NATIVE else "|Native filters")
    metrics = re.sub(rf"^## (?:{others}).*?(?=^## )", "", metrics, flags=re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|", metrics, re.MULTILINE)
    rows = [row for row in rows if not (IS_NATIVE and row[0].startswith("envoy_wasm_"))]
    return [(name, set(re.findall(r"`(\w+)`", labels))) for name, labels in rows]


def test_every_documented_metric_is_there_with_its_labels(live: dict[str, list[set[str]]]) -> None:
    names = documented()
    assert len(names) > 40, "the tables are read"
    wrong = [name for name, _ in names if name not in live and name not in AFTER_A_FAILURE]
    assert not wrong
    for name, labels in names:
        assert all(labels <= sample for sample in live.get(name, [])), (name, labels, live[name][0])


def test_every_metric_of_longhaul_is_documented(live: dict[str, list[set[str]]]) -> None:
    known = dict(documented())
    ours = {name for name in live if name.startswith(("longhaul_", "coredns_longhaul_"))}
    assert len(ours) > 15
    assert sorted(ours - known.keys()) == []


@pytest.fixture(scope="module")
def prometheus(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus on the gateway, configured as in the document. It has scraped often enough for a rate."""
    config = re.search(r"^```yaml\n(scrape_configs:.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert config
    with running(tmp_path_factory.mktemp("prometheus"), bed.topology.gateway, config[1]) as one:
        one.wait_for_scrapes("longhaul", 3, lambda: use(bed))
        yield one


def test_every_query_of_the_dashboard_for_one_box_has_data_and_the_labels_its_legend_shows(
    prometheus: Prometheus,
) -> None:
    queries = [one for one in panels() if not one.is_of_a_pair]
    assert len(queries) > 35
    for one in queries:
        has_data(prometheus, one)


def test_a_query_for_what_is_not_there_has_no_data(prometheus: Prometheus) -> None:
    assert prometheus.query("sum(rate(longhaul_url_rewrite_no_such_total[30s]))") == []


def test_the_dashboard_describes_every_panel_and_names_no_job() -> None:
    for one in panels():
        assert len(one.description) > 20, f"{one.title} has no description"
        metrics = len(re.findall(r"\b(?:longhaul|envoy|coredns|process)_\w+(?=[{\[ )]|$)", one.unlabelled))
        assert one.expression.count('instance=~"$instance",job=~"$job"') == metrics, one


def test_the_dashboard_of_a_fleet_has_data_from_recorded_series_alone(prometheus: Prometheus) -> None:
    recorded = set(re.findall(r"^  - record: (\S+)$", FLEET_RULES.read_text(), re.MULTILINE))
    asked = {name for one in panels(FLEET) for name in re.findall(r"\blonghaul:\w+:\w+", one.expression)}
    assert asked == recorded
    for one in panels(FLEET):
        assert len(one.description) > 20, f"{one.title} has no description"
        assert not re.search(r"\b(?:longhaul|envoy|coredns)_\w+", one.expression), one
        if not one.is_of_a_pair:
            has_data(prometheus, one)


def test_the_rules_of_a_fleet_make_as_few_series_a_box_as_they_say(prometheus: Prometheus) -> None:
    stated = re.search(r"make (\d+) series a box", FLEET_RULES.read_text())
    assert stated
    [of_an_edge] = prometheus.query('count({__name__=~"longhaul:.*"})')
    # A remote has one more: whether its ground responds.
    assert int(of_an_edge["value"][1]) + 1 == int(stated[1])


@pytest.mark.parametrize(
    ("rules", "tests", "count"), [(ALERTS, "alerts_test.yaml", 8), (FLEET_RULES, "fleet_alerts_test.yaml", 6)]
)
def test_each_alert_fires_for_its_fault_alone(rules: Path, tests: str, count: int, folder: Path) -> None:
    need_commands("promtool")
    shutil.copy(rules, folder)
    shutil.copy(Path(__file__).with_name(tests), folder)
    done = subprocess.run(["promtool", "test", "rules", tests], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    alerts = re.findall(r"^  - alert: (\w+)$", rules.read_text(), re.MULTILINE)
    assert len(alerts) == count
    cases = (folder / tests).read_text()
    assert all(f'alertname="{alert}"' in cases for alert in alerts)


def test_an_alert_asks_for_metrics_that_are_there(live: dict[str, list[set[str]]]) -> None:
    rules = ALERTS.read_text() + FLEET_RULES.read_text()
    asked = set(re.findall(r"\b(?:longhaul|envoy|coredns)_\w+(?=[{\[ )]|$)", rules, re.MULTILINE))
    labels = {"envoy_cluster_name", "envoy_http_conn_manager_prefix", "envoy_response_code_class"}
    assert len(asked) > 7
    assert asked - labels - AFTER_A_FAILURE - (set() if IS_NATIVE else OF_NATIVE_FILTERS) <= live.keys()


def test_the_access_log_counts_the_moved_urls_of_a_page(bed: Bed) -> None:
    mark = fresh()
    page = made_to_order(host=OBJECTS, header=f"X-Mark:{mark}")
    got = bed.curl.get(page)
    [line] = wait_for("the page in the log", lambda: [one for one in bed.pep.requests() if mark in one.get("path", "")])
    assert int(line["moved"]) == got.body.count(f"https://{PROXY_NAME}/{OBJECTS}/".encode())
    assert int(line["page_bytes"]) == len(bed.original(page).body)
    assert (line["hosts_saved"], line["hop"]) == ("1", "edge_http")
    assert "bail_out" not in line
    bed.curl.get(f"http://{OBJECTS}/{mark}.png")
    [asked] = wait_for(
        "the object in the log", lambda: [one for one in bed.pep.requests() if one.get("path") == f"/{mark}.png"]
    )
    assert "moved" not in asked, "an object is no page"
