"""The files that an operator installs: units, image, packet rules."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from e2e.bed import TestBed, made_to_order
from harness.boxes.pep import PROXY_NAME, command, gateway_config, write_config
from harness.host.artifacts import REPOSITORY, built, need_commands
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.net.namespaces import Namespace
from harness.net.redirect import RULES
from harness.net.topology import CLIENT_DEVICE

DEPLOY = REPOSITORY / "deploy"
REQUESTS = 'envoy_http_downstream_rq_total{envoy_http_conn_manager_prefix="edge_http"}'
EXPOSURE = {"longhaul.service": 2.0, "longhaul-host@.service": 3.0, "longhaul-host-watch@.service": 2.0}
"""The highest exposure of each unit, from 0 to 10, as `systemd-analyze security` rates it."""


@pytest.mark.parametrize("unit", EXPOSURE)
def test_a_unit_is_right_and_may_do_little(unit: str, folder: Path) -> None:
    need_commands("systemd-analyze")
    text = (DEPLOY / "systemd" / unit).read_text()
    for name in EXPOSURE:
        # `verify` requires the programs, and the units that a unit depends on.
        there = (DEPLOY / "systemd" / name).read_text().replace("/usr/lib/longhaul/longhaul", str(built("longhaul")))
        (folder / name).write_text(re.sub(r"^Documentation=.*\n", "", there, flags=re.MULTILINE))
    instance = folder / unit.replace("@.", "@lan0.")
    if instance.name != unit:
        instance.write_text((folder / unit).read_text())
    verified = analyze("verify", "--man=no", "--recursive-errors=no", instance)
    assert verified.returncode == 0, verified.stderr
    assert not [line for line in verified.stderr.splitlines() if "longhaul" in line], verified.stderr
    bound = f"--threshold={int(EXPOSURE[unit] * 10)}"
    judged = analyze("security", "--offline=yes", "--no-pager", bound, instance)
    assert judged.returncode == 0, "\n".join(judged.stdout.splitlines()[-3:])
    capabilities = re.search(r"^CapabilityBoundingSet=(.*)$", text, re.MULTILINE)
    assert capabilities
    assert len(capabilities[1].split()) == 1


def test_packet_rules_come_before_the_listeners() -> None:
    """They once did: systemd considered the service started at exec, seconds before its listeners opened."""
    service = (DEPLOY / "systemd" / "longhaul.service").read_text()
    rules = (DEPLOY / "systemd" / "longhaul-host@.service").read_text()
    assert "\nType=notify\n" in service
    for order in ("After", "BindsTo"):
        assert f"\n{order}=longhaul.service\n" in rules


def test_a_unit_with_a_slip_is_found(folder: Path) -> None:
    need_commands("systemd-analyze")
    slip = (DEPLOY / "systemd" / "longhaul.service").read_text().replace("NoNewPrivileges=yes", "NoNewPrivleges=yes")
    path = folder / "longhaul.service"
    path.write_text(slip)
    assert "NoNewPrivleges" in analyze("verify", "--man=no", path).stderr


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60
    )


def test_the_rules_that_are_printed_are_those_the_tests_load(root_bed: None, folder: Path) -> None:  # noqa: ARG001
    certificate = Authority(folder).issue(PROXY_NAME).as_dict()
    config = write_config(folder, gateway_config(folder, certificate), ["example.org"])
    script = command("host", config, "--clients", CLIENT_DEVICE, "--print")
    printed = re.search(r"<<'RULES'\n(.*?)\nRULES", script.stdout, re.DOTALL)
    assert printed, script.stderr
    (folder / "printed.nft").write_text(printed[1])
    assert loaded(folder / "printed.nft") == loaded(RULES)


def test_a_connection_from_before_the_rules_goes_on_and_the_next_one_comes_to_us(bed: TestBed, folder: Path) -> None:
    """A client that roams in from another region has such a connection. The listeners do not know it and would reset
    it."""
    body = folder / "body"
    body.write_bytes(b"x" * 24_000)
    connects = len(bed.origins.events("connect"))
    with ThreadPoolExecutor() as pool:
        with bed.without_longhaul():
            slowly = ("--limit-rate", "6k", "--header", "Expect:", "--data-binary", f"@{body}")
            under_way = pool.submit(bed.curl.get, made_to_order(size=10), *slowly)
            wait_for("a connection at the origin", lambda: len(bed.origins.events("connect")) > connects)
        assert not under_way.done(), "it was to be under way when the rules came"
        answer = under_way.result()
    assert (answer.status, len(answer.body), answer.problem) == (200, 10, "")
    before = bed.pep.metrics().get(REQUESTS, 0)
    assert bed.curl.get(made_to_order(size=10)).status == 200
    assert bed.pep.metrics()[REQUESTS] == before + 1


def loaded(rules: Path) -> dict[str, list[str]]:
    """Returns the kernel's rules of each chain after loading a file, without those that only count.

    Their order means nothing between protocols."""
    with Namespace("rules") as namespace:
        namespace.run("nft", "-f", rules)
        listing = namespace.run("nft", "list", "table", "inet", "longhaul").stdout
    chains = re.findall(r"chain (\w+) \{\n(.*?)\n\t\}", listing, re.DOTALL)
    deciding = {name: body for name, body in chains if name != "arrived"}
    assert len(deciding) == 2, listing
    counted = re.compile(r' counter name "\w+"')
    return {
        name: sorted(
            counted.sub("", line).strip() for line in body.splitlines() if not re.search(counted.pattern + "$", line)
        )
        for name, body in deciding.items()
    }
