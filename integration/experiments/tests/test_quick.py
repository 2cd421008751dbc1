"""The quick subset end to end: whole pages by every available contender, bounds that hold, figures and a report.

`make test-long` runs it. Pages whose client moves are part of `make test`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from experiments.catalogue import QUICK_GROUPS
from experiments.cli import main
from experiments.roaming import SCENARIOS, Roaming
from harness.host.artifacts import built, need_commands, need_root
from harness.lab.contenders import contender
from harness.lab.measure import Run, run_from


@pytest.fixture(scope="module")
def machine() -> None:
    """Skips a test where the machine lacks something that beds need."""
    need_root()
    need_commands("ip", "nft", "nsenter", "unshare", "sysctl", "curl", "chromium", "certutil")
    for name in ("longhaul", "coredns", "url_rewrite.wasm", "envoy", "origins", "longhaul-link"):
        built(name)


@pytest.fixture(scope="module")
def quick(machine: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, float], list[Run], Path]:  # noqa: ARG001
    """Returns figures, loads and folder of one quick run."""
    out = tmp_path_factory.mktemp("quick")
    assert main(["--quick", "--out", str(out)]) == 0
    text = json.loads((out / "quick.json").read_text())
    return text["figures"], [run_from(run) for run in text["runs"]], out


@pytest.mark.long
def test_every_requested_load_ran_and_is_complete(
    quick: tuple[dict[str, float], list[Run], Path],
) -> None:
    _, runs, _ = quick
    asked = {
        (group.link_name, page, scheme, name)
        for group in QUICK_GROUPS
        for page in group.pages
        for scheme in group.schemes
        for name in group.contenders
        if contender(name).missing() is None
    }
    assert {(run.link, run.page, run.scheme, run.contender) for run in runs} == asked
    assert [run.problem for run in runs if not run.complete] == []
    assert all(run.objects == run.expected_objects > 10 for run in runs)


@pytest.mark.long
def test_nothing_beats_the_floor_and_direct_does_not_beat_the_ideal(
    quick: tuple[dict[str, float], list[Run], Path],
) -> None:
    figures, runs, _ = quick
    for run in runs:
        stem = f"{run.link}_{run.page}".replace("-", "_")
        assert run.load_ms > figures[f"{stem}_floor_ms"], run.contender
        if run.contender == "direct":
            assert run.load_ms > figures[f"{stem}_ideal_ms"]


@pytest.mark.long
def test_the_link_counts_what_the_browser_loaded_and_the_rewriting_box_saves_lookups(
    quick: tuple[dict[str, float], list[Run], Path],
) -> None:
    _, runs, _ = quick
    for run in runs:
        content = sum(step.bytes for step in run.steps)
        # All content crossed the link in packets. A pair may compress headers to fewer bytes than the browser counts.
        assert 0.7 * content < run.bytes_down < 3 * content + 100_000, run.contender
        assert run.doubts == [] or all("scheduling" in doubt for doubt in run.doubts)
    lookups = {run.contender: run.dns_queries for run in runs if (run.page, run.scheme) == ("cnn", "http")}
    assert 0 < lookups["longhaul-edge"] < lookups["direct"]


@pytest.mark.long
def test_the_report_stands_alone(quick: tuple[dict[str, float], list[Run], Path]) -> None:
    _, _, out = quick
    report = (out / "report.html").read_text()
    assert "<svg" in report
    assert "In short" in report
    assert "<script" not in report
    assert "<link" not in report
    assert "<img" not in report


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("target", ["auto", "http"])
def test_a_page_goes_on_although_its_client_moves_in_the_middle_of_it(
    machine: None,  # noqa: ARG001
    name: str,
    target: str,
) -> None:
    # pytest's folder has a long name, which leaves no room for the path of the browser's socket.
    with (
        tempfile.TemporaryDirectory(prefix="longhaul-") as folder,
        Roaming(Path(folder), SCENARIOS[name], target=target) as roaming,
    ):
        journey = roaming.journey()
        carried = roaming.new_link_bytes()
    # In case B the new PEP resets connections that it does not know. Browsers do not retry all of those requests.
    assert name == "b" or journey.absent == []
    assert journey.whole_when_reloaded
    assert 0 < journey.moved_after < journey.expected, "it moved before or after the page, not in the middle of it"
    assert carried > 10_000, "nothing of the page came over the new link"
