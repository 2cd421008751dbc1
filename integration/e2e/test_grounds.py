"""A remote with several grounds: one of them dies, ends or comes back, and no GET is lost. Grounds accept remotes by
name, wildcard and SPIFFE ID."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.boxes.grounds import LINK, REMOTES, SHIP, WWW, GroundsBed, grounds
from harness.boxes.pair import FAIR, until_names_cross
from harness.host.waiting import wait_for
from harness.net.authority import issue_as_written
from harness.origins.unread import Endless, endless, failed, held

NATIVE_LINK = r'"name":"([a-z.]+)","bytes_per_second"'


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GroundsBed]:
    with grounds(tmp_path_factory.mktemp("grounds")) as running:
        yield running


def test_the_first_ground_serves_while_it_responds(bed: GroundsBed) -> None:
    load = bed.load("first", threads=2)
    load.until(40)
    load.stop()
    assert load.failures == []
    first, second = bed.grounds
    wait_for("the log of the first ground", lambda: first.served("first") >= load.done)
    assert second.served("first") == 0


def test_names_of_remotes_come_from_a_file_and_a_change_drains_nobody(bed: GroundsBed, folder: Path) -> None:
    first = bed.grounds[0]

    def accepts(name: str) -> bool:
        return first.accepts(issue_as_written(folder / name.replace("/", "_"), bed.authority.files, name))

    assert accepts(SHIP)
    added = ("new.test", "a.ferries.test", "spiffe://fleet.test/barge/7", "spiffe://fleet.test/tug")
    assert not any(accepts(name) for name in added)
    before = (first.connections(), first.draining())
    names = [SHIP, "new.test", "*.ferries.test", "spiffe://fleet.test/barge/*", "spiffe://fleet.test/tug", ""]
    (first.config.parent / REMOTES).write_text("\n".join(names))
    wait_for("the new remote accepted", lambda: accepts("new.test"))
    assert all(accepts(name) for name in added)
    strangers = (
        "ferries.test", "a.b.ferries.test", "*.ferries.test", "A.ferries.test", "a-ferries.test",
        "spiffe://fleet.test/barge", "spiffe://fleet.test/tug/7", "spiffe://other.test/barge/7",
    )  # fmt: skip
    assert [name for name in strangers if accepts(name)] == []
    wait_for("the same pipes as before", lambda: (first.connections(), first.draining()) == before)


def test_a_wrong_file_of_names_is_refused_and_the_names_stay(bed: GroundsBed, folder: Path) -> None:
    first = bed.grounds[0]
    file = first.config.parent / REMOTES
    good = file.read_text()
    file.write_text(f"{good}ship*.test\n")
    line = len(good.splitlines()) + 1
    wait_for("the refusal", lambda: f"bad line in {file}:{line}:1" in first.pep.output())
    assert first.accepts(issue_as_written(folder / "ship", bed.authority.files, SHIP))
    file.write_text(good)


def test_no_get_is_lost_when_a_ground_dies_and_its_clients_return_when_it_is_back(bed: GroundsBed) -> None:
    first, second = bed.grounds
    load = bed.load("kill")
    load.until(60)
    first.kill()
    load.until(200)
    load.stop()
    assert load.failures == []
    wait_for("the log of the second ground", lambda: second.served("kill") > 100)
    turn = f"the ground {first.address}:{first.port} does not respond; requests use {second.address}:{second.port}"
    wait_for("the name of the ground in use", lambda: turn in bed.remote.output())
    first.pep.__enter__()

    def is_back() -> bool:
        after = bed.load("back", threads=1)
        after.until(3)
        after.stop()
        assert after.failures == []
        return first.served("back") > 0

    wait_for("the first ground in use", is_back, timeout_s=30, interval_s=0.2)


def test_https_follows_when_a_ground_falls_silent_and_when_it_is_back(folder: Path) -> None:
    """Unused streams would wait for the pipe of the silent ground. Names of clients, which stand in front of their
    bytes, need the agreement of the other one."""
    with grounds(folder, link=LINK | FAIR) as bed:
        first, second = bed.grounds
        until_names_cross(bed.remote)
        assert [bed.tls_problem() for _ in range(3)] == [""] * 3
        wait_for("the log of the first ground", lambda: first.passed_tls() == 3)
        with first.silent():
            wait_for("the second ground in use", lambda: "does not respond; requests use" in bed.remote.output())
            wait_for("other streams", lambda: '"emptied"' in bed.remote.admin("/config_dump"))
            assert [bed.tls_problem(2) for _ in range(3)] == [""] * 3
            until_names_cross(bed.remote)
            assert [bed.tls_problem() for _ in range(20)] == [""] * 20
            wait_for("the log of the second ground", lambda: second.passed_tls() >= 20)
        wait_for("the first ground in use", lambda: "responds again; requests use it" in bed.remote.output())
        before = first.passed_tls()
        wait_for("https by the first ground", lambda: not bed.tls_problem(1) and first.passed_tls() > before)
        until_names_cross(bed.remote)
        assert [bed.tls_problem() for _ in range(20)] == [""] * 20


def test_no_get_is_lost_when_a_ground_ends(bed: GroundsBed) -> None:
    first, second = bed.grounds
    load = bed.load("term")
    load.until(60)
    first.pep.child.stop()
    load.until(200)
    load.stop()
    assert load.failures == []
    wait_for("the log of the second ground", lambda: second.served("term") > 100)


def test_downloads_that_a_client_does_not_read_hold_up_no_other_client(folder: Path) -> None:
    """With a window of four streams for all clients, sixteen such downloads closed the pipe."""
    with endless() as origin, grounds(folder, 1, origin=f"127.0.0.1:{origin}", warm=0) as bed:
        assert failed("127.0.0.1", bed.http, WWW, 1) == 0
        with held("127.0.0.1", bed.http, WWW, 16):
            # Once the origin has to wait, the windows of all streams are full.
            amounts = [-1]

            def stands() -> bool:
                amounts.append(Endless.sent)
                return amounts[-1] == amounts[-2]

            wait_for("downloads that stand", stands, interval_s=0.5)
            assert failed("127.0.0.1", bed.http, WWW, 10) == 0


def test_a_new_remote_shares_a_link_of_its_own_and_drains_nobody(folder: Path) -> None:
    with grounds(folder, count=1, link=LINK | FAIR) as shared:
        (ground,) = shared.grounds

        def buckets() -> set[str]:
            """Returns the remotes whose links are shared, by Envoy's filter or by the native one."""
            dump = ground.pep.admin("/config_dump").replace("\\", "")
            return {*re.findall(r"link-[0-9.]+-[0-9.]+s-([a-z.]+)", dump), *re.findall(NATIVE_LINK, dump)}

        assert buckets() == {SHIP}
        load = shared.load("shared", threads=2)
        load.until(20)
        before = (ground.connections(), ground.draining())
        (ground.config.parent / REMOTES).write_text(f"{SHIP}\nnew.test\n")
        wait_for("the share of the new remote", lambda: buckets() == {SHIP, "new.test"})
        load.until(20)
        load.stop()
        assert load.failures == []
        assert (ground.connections(), ground.draining()) == before
