"""A user of the box who is neither root nor the service reads what the status page shows, and nothing more."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.artifacts import need_commands, need_root
from harness.authority import Authority
from harness.clients import Curl
from harness.local_users import Surfaces, obeyed, surfaces
from harness.namespaces import Namespace
from harness.pep import PROXY_NAME, Pep, gateway_config, write_config
from harness.topology import PROXY
from harness.waiting import wait_for


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter. Those of pytest would hide files with a wrong mode."""
    with tempfile.TemporaryDirectory(prefix="longhaul-local-users-") as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.fixture(scope="module")
def box() -> Iterator[tuple[Pep, Namespace, Path]]:
    """An edge that uses each of its programs, on a machine that has nothing but loopback."""
    need_root()
    need_commands("ip", "nsenter", "curl")
    with open_folder() as folder, Namespace("box") as namespace:
        namespace.ip("address", "add", f"{PROXY}/32", "dev", "lo")
        certificate = Authority(folder).issue(PROXY_NAME).as_dict()
        config = gateway_config(folder, certificate, page={"images": {"quality": 75}})
        config["listen"] |= {"intercept": "none", "health": "127.0.0.1:9902"}
        with Pep(write_config(folder, config, ["example.org"]), folder, namespace) as pep:
            Curl(folder, namespace).get(f"http://{PROXY}/example.org/")
            wait_for("the access log", (folder / "access.jsonl").exists)
            yield pep, namespace, folder


def surfaces_of(pep: Pep, folder: Path) -> Surfaces:
    return surfaces(pep.child.process.pid, pep.state, folder / "cache", folder / "access.jsonl")


def test_no_local_user_commands_a_box_or_reads_more_than_its_status(box: tuple[Pep, Namespace, Path]) -> None:
    pep, namespace, folder = box
    found = surfaces_of(pep, folder)
    # All kinds are there, so that none passes because nothing was tried.
    assert {("127.0.0.1", 9153), ("127.0.0.1", 9900), ("127.0.0.1", 9902)} <= found.tcp
    assert ("127.0.0.1", 53) in found.udp
    assert len(found.pids) >= 4, "longhaul, Envoy, CoreDNS and the program that recodes images"
    assert {"admin.sock", "coredns.sock"} <= {Path(path).name for path in found.unix}
    assert not [path for path in found.unix if path.startswith("@")], "an abstract socket has no owner"
    assert len(found.files) > 10
    assert obeyed(found, namespace) == []
    after = surfaces_of(pep, folder)
    assert (after.pids, after.tcp, after.udp, after.unix) == (found.pids, found.tcp, found.udp, found.unix)
    assert json.loads(pep.admin("/server_info"))["state"] == "LIVE"


def test_every_local_user_reads_the_metrics_and_the_status(box: tuple[Pep, Namespace, Path]) -> None:
    pep, namespace, _ = box
    as_nobody = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "curl", "--silent", "--fail")
    for page in ("127.0.0.1:9153/metrics", "127.0.0.1:9900/status.json", "127.0.0.1:9902/ready"):
        assert namespace.run(*as_nobody, f"http://{page}").stdout, page
    # The report is the source of `longhaul status`.
    namespace.run(*as_nobody[:6], "cat", pep.state / "run.json")
