"""The dashboard and the alert rules, and a Prometheus that scrapes a box for them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from harness.host.artifacts import REPOSITORY, need_commands
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.net.namespaces import Namespace

DASHBOARDS = REPOSITORY / "deploy" / "dashboards"
ALERTS = DASHBOARDS / "alerts.yaml"
BOX, FLEET = "longhaul.json", "fleet.json"
FLEET_RULES = DASHBOARDS / "fleet.yaml"
LISTEN = "127.0.0.1:9090"


@dataclass(frozen=True)
class Query:
    """One query of a panel."""

    title: str
    description: str
    expression: str
    legend: str

    @property
    def is_of_a_pair(self) -> bool:
        """Its panel says at which end of a pair it has data."""
        return self.description.startswith(("At a remote:", "At a ground:"))

    @property
    def unlabelled(self) -> str:
        """The expression without label values and without the labels that it groups by."""
        return re.sub(r"\(\w+(?:, \w+)*\)", "", re.sub(r"\{[^}]*\}", "{}", self.expression))


def panels(file: str = BOX) -> list[Query]:
    """Every query of a dashboard."""
    dashboard = json.loads((DASHBOARDS / file).read_text())
    return [
        Query(panel["title"], panel.get("description", ""), target["expr"], target["legendFormat"])
        for panel in dashboard["panels"]
        for target in panel.get("targets", [])
    ]


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus."""

    namespace: Namespace

    def query(self, expression: str) -> list[dict]:
        """Returns the samples of an expression now."""
        url = f"http://{LISTEN}/api/v1/query?query={quote(expression)}&time={time.time():.3f}"
        answer = json.loads(self.namespace.run("curl", "--silent", "--show-error", url).stdout)
        assert answer["status"] == "success", answer
        return answer["data"]["result"]

    def wait_for_scrapes(self, job: str, count: int, meanwhile: Callable[[], None]) -> None:
        """Waits until a job has been scraped so often. Each round calls `meanwhile`, so that counters move."""

        def scraped() -> bool:
            meanwhile()
            result = self.query(f'count_over_time(up{{job="{job}"}}[1m])')
            return bool(result) and float(result[0]["value"][1]) >= count

        wait_for(f"{count} scrapes of {job}", scraped, timeout_s=60)


def has_data(prometheus: Prometheus, query: Query) -> None:
    """Asserts that a query of the dashboard has data for all boxes, with the labels that its legend shows."""
    expression = query.expression.replace("$__rate_interval", "30s")
    expression = re.sub(r"\$(instance|job|role)\b", ".*", expression)
    result = wait_for(f"data of {query.title}: {expression}", lambda: prometheus.query(expression))
    for label in re.findall(r"\{\{(\w+)\}\}", query.legend):
        assert all(one["metric"].get(label) for one in result), f"{query.title}: no {label} in {result}"


@contextmanager
def running(folder: Path, namespace: Namespace, scrape_configs: str) -> Iterator[Prometheus]:
    """A Prometheus in a namespace, which scrapes once a second."""
    need_commands("prometheus")
    every = "{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }"
    rules = f"rule_files: [{FLEET_RULES}]"
    (folder / "prometheus.yaml").write_text(f"global: {every}\n{rules}\n{scrape_configs}")
    command = [
        "prometheus", f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={LISTEN}",
    ]  # fmt: skip
    with Child(namespace.inside(command), folder / "prometheus.log") as child:
        child.wait_for_output("Server is ready")
        yield Prometheus(namespace)
