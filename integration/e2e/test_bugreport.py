"""`longhaul bugreport`: one archive of a box with traffic, of use for developers, without keys, names and addresses."""

from __future__ import annotations

from pathlib import Path

from e2e.bed import OBJECTS, TODAY
from harness.boxes.bed import Bed
from harness.boxes.bug_report import bug_report, secrets
from harness.boxes.pep import command
from harness.host.waiting import wait_for
from harness.net.topology import CLIENT_NETWORK


def test_the_report_of_a_box_with_traffic_is_of_use_and_holds_no_secret(bed: Bed, folder: Path) -> None:
    for _ in range(2):
        assert bed.curl.get(f"http://{OBJECTS}/kept.png?size=4000&token=s3cr3t").status == 200
    assert bed.dig(TODAY, "A").addresses()
    # Envoy writes the line of a request after the client has the response.
    wait_for("the requests in the log", lambda: OBJECTS in str(bed.pep.requests()))
    assert CLIENT_NETWORK in str(bed.pep.requests()), "the box has seen what the report must not show"

    texts = bug_report(bed.pep, bed.topology.gateway, folder)
    assert secrets(texts, ["s3cr3t"]) == []

    parts = {"version.txt", "longhaul.yaml", "check.txt", "status.json", "sysctl.txt", "rules.txt", "journal.txt"}
    assert parts | {"metrics-envoy.txt", "metrics-coredns.txt", "rendered/lds.yaml"} <= set(texts)
    assert "net.ipv4.tcp_congestion_control = " in texts["sysctl.txt"]
    assert '"role": "edge"' in texts["status.json"]
    assert "envoy.extensions.filters.http.router.v3.Router" in texts["rendered/lds.yaml"]
    assert "role edge" in texts["check.txt"]
    assert "site-1.example" in str(texts)
    for name in ("CoreDNS", "Envoy", "kernel"):
        assert name in texts["version.txt"]


def test_a_report_never_replaces_a_file(bed: Bed, folder: Path) -> None:
    bug_report(bed.pep, bed.topology.gateway, folder)
    (report,) = folder.glob("report-*.tar.gz")
    before = report.read_bytes()
    done = command("bugreport", bed.pep.config, "--out", report)
    assert (done.returncode, report.read_bytes()) == (1, before)
    assert "exists" in done.stderr, done.stderr
