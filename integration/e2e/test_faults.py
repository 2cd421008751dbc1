"""The errors that a user sees when something behind or below the proxy fails. Each ends with its fault.

envoy-config/FAULTS.md has a row for each fault. `tools/links` compares that page with the tests that it names.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.bed import made_to_order
from harness.boxes.bed import OWN, Bed
from harness.boxes.desk import Desk
from harness.boxes.pep import Pep
from harness.clients.moved import put_back
from harness.host.artifacts import built
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.net.topology import PROXY, RESOLVER
from harness.origins.program import Site

WELL, LATE, DEAD, GONE = "www.example.org", "late.example.org", "dead.example.org", "gone.example.org"
BROKEN = {"silent": "203.0.113.21", "longer": "203.0.113.22", "shorter": "203.0.113.23", "stuck": "203.0.113.24",
          "no_http": "203.0.113.25"}  # fmt: skip
UNREACHABLE = "203.0.113.31"

IDLE_S = 3
"""How long a request may make no progress: seconds here instead of minutes."""


class FaultBed(Bed):
    """A bed with several origins, most of them broken in one way each."""

    def __init__(self, folder: Path) -> None:
        authority = Authority(folder)
        site = Site(dns=[f"{RESOLVER}:53"], ca=authority.files.as_dict(), https_port=443)
        for number, name in enumerate((WELL, LATE)):
            site.hosts[name] = {"address": f"203.0.113.{10 + number}", "special": True, "generate": True}
        site.records = {host(name): [address] for name, address in BROKEN.items()}
        site.records |= {DEAD: ["203.0.113.30"], GONE: [UNREACHABLE]}
        super().__init__(folder, site, ["example.org"], authority, transport={"stream_idle_timeout": f"{IDLE_S}s"})

    @contextmanager
    def dropping(self, *what: str) -> Iterator[None]:
        """Drops packets into the Internet that match one of the nft expressions."""
        rules = "".join(f"add rule inet fault input {one} drop\n" for one in what)
        table = "add table inet fault\nadd chain inet fault input { type filter hook input priority 0; }\n"
        path = self.folder / "fault.nft"
        path.write_text(table + rules)
        self.topology.internet.run("nft", "-f", path)
        try:
            yield
        finally:
            self.topology.internet.run("nft", "delete", "table", "inet", "fault")


def host(behaviour: str) -> str:
    return f"{behaviour.replace('_', '-')}.example.org"


@pytest.fixture(scope="module")
def faults(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultBed]:  # noqa: ARG001 - order
    folder = tmp_path_factory.mktemp("faults")
    script = Path(__file__).with_name("broken_origin.py")
    with FaultBed(folder) as bed:
        where = [f"{address}={behaviour}" for behaviour, address in BROKEN.items()]
        child = Child(bed.topology.internet.inside([sys.executable, script, *where]), folder / "broken.log")
        try:
            child.wait_for_output("ready")
            yield bed
        finally:
            child.stop()


def is_well(bed: FaultBed) -> bool:
    """Is another origin's page served and rewritten while one origin is broken?"""
    got = bed.curl.get(made_to_order(WELL, host=LATE))
    return got.status == 200 and f"/{LATE}/".encode() in got.body


# ------------------------------------------------------------------------------------------------------- the origin


def test_a_dead_origin_is_answered_at_once_with_the_reason(faults: FaultBed) -> None:
    got = faults.curl.get(f"http://{DEAD}/")
    assert got.status == 502
    assert b"no connection to dead.example.org" in got.body
    assert got.seconds < 4
    assert is_well(faults)


def test_an_origin_out_of_reach_is_given_up(faults: FaultBed) -> None:
    with faults.dropping(f"ip daddr {UNREACHABLE}"):
        got = faults.curl.get(f"http://{GONE}/", timeout_s=20)
    assert got.status in (502, 503, 504)
    assert got.seconds < 12
    assert is_well(faults)


def test_an_origin_that_says_nothing_is_given_up_after_the_idle_timeout(faults: FaultBed) -> None:
    got = faults.curl.get(f"http://{host('silent')}/")
    assert got.status == 504
    assert b"stream_idle_timeout" in got.body
    assert IDLE_S <= got.seconds < IDLE_S + 5


def test_a_slow_origin_is_waited_for_as_long_as_it_makes_progress(faults: FaultBed) -> None:
    got = faults.curl.get(made_to_order(WELL, host=LATE, size=2000, chunk=500, pause=1000))
    assert (got.status, got.problem) == (200, "")
    assert got.seconds > IDLE_S, "it took longer than a silence may"
    assert len(put_back(got.body, OWN)) == 2000


@pytest.mark.parametrize("behaviour", ["shorter", "stuck"])
def test_a_body_that_stops_is_a_prefix_and_the_client_can_tell(faults: FaultBed, behaviour: str) -> None:
    got = faults.curl.get(f"http://{host(behaviour)}/")
    assert got.status == 200
    assert got.problem, "a page cut short must not look whole"
    assert got.body.startswith(b"<p>")
    assert is_well(faults)


def test_bytes_beyond_the_declared_length_reach_nobody(faults: FaultBed) -> None:
    for _ in range(3):
        got = faults.curl.get(f"http://{host('longer')}/")
        assert (got.status, got.body, got.problem) == (200, b"0123456789", "")
    assert is_well(faults)


def test_an_origin_that_speaks_no_http_is_answered_for_with_the_reason(faults: FaultBed) -> None:
    got = faults.curl.get(f"http://{host('no_http')}/")
    assert got.status == 502
    assert b"not HTTP" in got.body
    assert is_well(faults)


# ----------------------------------------------------------------------------------------------------- the resolver


def test_without_a_resolver_known_names_work_and_others_are_refused_until_it_is_back(faults: FaultBed) -> None:
    assert is_well(faults)
    known = faults.dig(WELL, "A").addresses()
    with faults.dropping("udp dport 53", "tcp dport 53"):
        assert is_well(faults), "the proxy knows its origins' addresses"
        assert faults.dig(WELL, "A").addresses() == known, "and clients get answers it knows"
        assert faults.dig(LATE, "A").status == "SERVFAIL"
        moved = faults.curl.get(f"http://{PROXY}/{LATE}/picture.png")
        assert moved.status in (502, 503, 504)
    wait_for("the name, now that the resolver is back", lambda: faults.dig(LATE, "A").addresses(), timeout_s=30)
    wait_for("the object", lambda: faults.curl.get(f"http://{PROXY}/{LATE}/picture.png").status == 200, timeout_s=30)


# ---------------------------------------------------------------------------------------------------------- the disk


class SmallDisk:
    """Takes the place of a namespace: commands see a tmpfs of `size` at `folder`, in their own mount namespace."""

    def __init__(self, folder: Path, size: str) -> None:
        folder.mkdir()
        self.folder = folder
        self._mount = f'mount -t tmpfs -o size={size} none "$0" && exec "$@"'

    def inside(self, command: Sequence[str | Path]) -> list[str]:
        """The command line that runs `command` there."""
        return ["unshare", "--mount", "sh", "-c", self._mount, str(self.folder), *map(str, command)]


def on(pep: Pep, *command: str) -> None:
    """Runs a command in the mount namespace of the running Longhaul."""
    pid = str(pep.child.process.pid)
    subprocess.run(["nsenter", "--target", pid, "--mount", "--", *command], check=True, capture_output=True)


def problems(pep: Pep, state: Path | None = None) -> list[str]:
    """Returns the problems that `longhaul status` prints in the mount namespace of the running Longhaul."""
    target = ("nsenter", "--target", str(pep.child.process.pid), "--mount", "--")
    line = [*target, str(built("longhaul")), "status", "--json", "--state", str(state or pep.state)]
    return json.loads(subprocess.run(line, capture_output=True, text=True, check=False).stdout)["problems"]


def test_a_disk_too_small_for_the_cache_costs_the_cache_until_there_is_room(root_bed: None, desk: Desk) -> None:  # noqa: ARG001
    disk = SmallDisk(desk.folder / "cache", "1m")
    with Pep(desk.write(), desk.folder, disk) as pep:
        (problem,) = problems(pep)
        assert "the cache is off: `cache.size` is 64mib" in problem
        assert "`cache.dir`" in problem
        assert desk.moved in desk.get(), "pages are served without it"
        on(pep, "mount", "-o", "remount,size=100m", str(disk.folder))
        pep.child.process.send_signal(1)  # SIGHUP: tries at once, not within half a minute
        wait_for("the cache", lambda: problems(pep) == [])
        assert desk.get("/kept.bin?size=3000") == desk.get("/kept.bin?size=3000")
        assert "starting it again" not in pep.output()


def test_a_full_disk_of_the_state_folder_costs_what_earlier_runs_knew(root_bed: None, desk: Desk) -> None:  # noqa: ARG001
    disk = SmallDisk(desk.folder / "state", "64k")
    spare = desk.folder / "spare"
    spare.mkdir()
    with Pep(desk.write(), desk.folder, disk, environment={"RUNTIME_DIRECTORY": str(spare)}) as pep:
        (problem,) = problems(pep, spare / "state")
        assert f"the state folder {disk.folder} cannot be written (No space left on device" in problem
        assert desk.moved in desk.get()


def test_with_a_full_cache_disk_what_is_kept_and_what_is_new_is_served(root_bed: None, desk: Desk) -> None:  # noqa: ARG001
    disk = SmallDisk(desk.folder / "cache", "66m")
    with Pep(desk.write(), desk.folder, disk) as pep:
        kept = [desk.get("/kept.bin?size=3000") for _ in range(2)][-1]
        filler = disk.folder / "filler"
        on(pep, "sh", "-c", f"cat /dev/zero > {filler} 2>/dev/null || true")
        assert desk.get("/kept.bin?size=3000") == kept
        assert desk.moved in desk.get()
        new = [desk.get("/new.bin?size=60000") for _ in range(3)]
        assert len(new[0]) > 40_000
        assert new == new[:1] * 3, "it is not stored"
        on(pep, "rm", str(filler))
        assert len(desk.get("/newer.bin?size=60000")) > 0
        assert "starting it again" not in pep.output()


def test_a_change_on_a_full_disk_is_refused_and_applied_when_there_is_room(root_bed: None, desk: Desk) -> None:  # noqa: ARG001
    disk = SmallDisk(desk.folder / "state", "8m")
    with Pep(desk.write(), desk.folder, disk) as pep:
        filler = disk.folder / "filler"
        on(pep, "sh", "-c", f"cat /dev/zero > {filler} 2>/dev/null || true")
        desk.write(rewrite={"level": "off", "target": "http"})
        wait_for("the complaint", lambda: "No space left on device" in pep.output())
        assert desk.moved in desk.get(), "what ran before runs on"
        on(pep, "rm", str(filler))
        pep.child.process.send_signal(1)  # SIGHUP: retries at once, not within half a minute
        wait_for("the change", lambda: desk.moved not in desk.get())
