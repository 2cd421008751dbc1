"""A user of the box who is neither root nor the service reads what the status page shows, and nothing more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.boxes.local_box import LocalBox, local_box
from harness.boxes.local_users import NOBODY, obeyed
from harness.host.artifacts import need_commands, need_root


@pytest.fixture(scope="module")
def box() -> Iterator[LocalBox]:
    need_root()
    need_commands("ip", "nsenter", "setpriv", "curl")
    with local_box() as running:
        yield running


def test_every_local_user_reads_the_metrics_and_the_status(box: LocalBox) -> None:
    as_nobody = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    for page in ("127.0.0.1:9153/metrics", "127.0.0.1:9900/status.json", "127.0.0.1:9902/ready"):
        assert box.namespace.run(*as_nobody, "curl", "--silent", "--fail", f"http://{page}").stdout, page
    # The source of `longhaul status`.
    assert box.namespace.run(*as_nobody, "cat", box.pep.state / "run.json").stdout


def test_no_local_user_commands_a_box_or_reads_more_than_its_status(box: LocalBox) -> None:
    found = box.surfaces()
    # All kinds are there, so that the test does not pass because nothing was tried.
    assert {("127.0.0.1", 9153), ("127.0.0.1", 9900), ("127.0.0.1", 9902)} <= found.tcp
    assert ("127.0.0.1", 53) in found.udp
    assert len(found.pids) >= 4, "longhaul, Envoy, CoreDNS and the program that recodes images"
    assert {"admin.sock", "coredns.sock"} <= {Path(path).name for path in found.unix}
    assert not [path for path in found.unix if path.startswith("@")], "an abstract socket has no owner"
    assert len(found.files) > 10
    assert obeyed(found, box.namespace) == []
    after = box.surfaces()
    assert (after.pids, after.tcp, after.udp, after.unix) == (found.pids, found.tcp, found.udp, found.unix)
    assert json.loads(box.pep.admin("/server_info"))["state"] == "LIVE"
