"""`longhaul log` describes the access log of a running box in words."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from e2e.pair_bed import LAB, LISTED, PairBed, standing_pair
from harness.boxes.desk import ANSWER, WWW, Desk
from harness.boxes.pep import Pep, command
from harness.clients.commands import Curl
from harness.host.artifacts import built
from harness.host.ports import free_ports
from harness.host.processes import whole_lines
from harness.host.waiting import wait_for
from harness.lab.line import FAR

SLOW = "/_/answer?wait=700"
HOST = ("-H", f"Host: {WWW}")


def test_the_log_of_the_running_box_names_slow_requests_and_urls_that_stayed(desk: Desk) -> None:
    with Pep(desk.write(), desk.folder) as pep:
        page = f"{ANSWER}&host=bank.example.org&header=Content-Security-Policy:%20img-src%20http://bank.example.org"
        assert b"bank.example.org" in desk.get(page)
        desk.get(SLOW)
        nobody = Curl(desk.folder).get(f"http://127.0.0.1:{desk.http}/", "-H", "Host: absent.example.org")
        assert nobody.status == 502
        wait_for("the requests in the log", lambda: len([one for one in pep.requests() if is_of_client(one)]) >= 3)
        state = ("--state", pep.state)
        everything = command("log", *state)
        assert everything.returncode == 0, everything.stderr
        assert "absent.example.org/  the name has no address" in everything.stdout
        assert "3 requests, 0 from the cache, 1 failed" in everything.stdout
        slow = command("log", *state, "--slow", "--site", "example.org", "--json")
        *requests, summary = map(json.loads, slow.stdout.splitlines())
        assert [one["slow"]["part"] for one in requests] == ["first_byte"], slow.stdout
        assert requests[0]["url"].endswith(SLOW)
        assert requests[0]["slow"]["ms"] >= 700
        assert summary["summary"]["requests"] == 1
        assert "0 requests" in command("log", *state, "--slow=1m").stdout
        left = command("log", *state, "--left").stdout
        assert "1 csp" in left, left
        assert "1 URLs stayed (csp): " in left, left
        assert SLOW not in left
        follows(desk, pep)
        without_a_log(desk, pep)


def follows(desk: Desk, pep: Pep) -> None:
    """Asserts that new requests appear until the command is stopped, and the summary at the end."""
    printed = desk.folder / "printed"
    with printed.open("w") as out:
        line = [str(built("longhaul")), "log", "--state", str(pep.state), "--follow", "--site", WWW]
        follower = subprocess.Popen(line, stdout=out)
    try:
        wait_for("the requests so far", lambda: SLOW in printed.read_text(), timeout_s=10)
        desk.get("/new.png")
        wait_for("the new request", lambda: "/new.png" in printed.read_text(), timeout_s=10)
        assert "from the cache" not in printed.read_text()
    finally:
        follower.terminate()
    assert follower.wait(timeout=10) == 0
    assert "3 requests, 0 from the cache" in printed.read_text()


def without_a_log(desk: Desk, pep: Pep) -> None:
    """Asserts that a run without a log file, or with a log in the journal, names the command that helps."""
    report = json.loads((pep.state / "run.json").read_text())
    other = desk.folder / "other"
    other.mkdir()
    for log, said in {"off": "Write `log: { access: on }`", "stderr": "| longhaul log -`"}.items():
        (other / "run.json").write_text(json.dumps({**report, "access_log": log}))
        done = command("log", "--state", other)
        assert done.returncode == 1
        assert said in done.stderr


class Keyed:
    """A box whose file has the key `log`, and that file's lines."""

    def __init__(self, desk: Desk, pep: Pep) -> None:
        self.desk, self.pep = desk, pep
        self.log = pep.state / "access.log"

    def files(self) -> list[Path]:
        """All files of the log, the one that is written last."""
        return [*sorted(self.log.parent.glob("access.log.*")), self.log]

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for file in self.files() for line in whole_lines(file)]

    def paths(self) -> list[str]:
        return [one["path"] for one in self.lines() if is_of_client(one) and "path" in one]

    def switch(self, **log: str) -> None:
        """Changes the key while the box runs."""
        before = self.pep.output().count("changed: applied")
        self.desk.write(log=log)
        wait_for("the change", lambda: self.pep.output().count("changed: applied") > before)

    def get(self, path: str) -> None:
        self.desk.get(path)


def is_of_client(line: dict[str, Any]) -> bool:
    """Returns true for a request of a client, and not a reason for its failure."""
    return line["hop"].startswith("edge")


def test_the_key_logs_requests_and_connections_once_and_says_who_made_them(desk: Desk) -> None:
    (tls,) = free_ports(1)
    desk.config["listen"]["tls"] = f"127.0.0.1:{tls}"
    with Pep(desk.write(log={"access": "on"}), desk.folder, log_requests=False) as pep:
        box = Keyed(desk, pep)
        box.get("/one.png")
        # The origin speaks no TLS. Its bytes pass anyway.
        for name in (WWW, "absent.example.org"):
            there = ("--connect-to", f"::127.0.0.1:{tls}")
            assert Curl(desk.folder).get(f"https://{name}/", "--insecure", *there).status == 0
        wait_for("three lines", lambda: len(box.lines()) >= 3)
        by_host = {one["authority"]: one for one in box.lines()}
        assert len(box.lines()) == len(by_host) == 3, box.lines()
        request, passed, refused = by_host[WWW], by_host[f"{WWW}:443"], by_host["absent.example.org:443"]
        assert {one["client"] for one in by_host.values()} == {"127.0.0.0/24"}
        assert (request["path"], request["status"], request["hop"]) == ("/one.png", 200, "edge_http")
        assert passed["hop"] == "tunnel"
        assert min(passed["bytes_in"], passed["bytes_out"]) > 0, passed
        assert refused["flags"] == "DF", refused
        assert stat.S_IMODE(box.log.stat().st_mode) & 0o027 == 0, "other users of the machine may not read it"
        state = ("--state", pep.state)
        words = command("log", *state).stdout
        assert f"{WWW}:443  passed unread: " in words
        assert "TLS" in words
        assert "the name has no address" in words
        who = command("log", *state, "--who").stdout.splitlines()
        assert who[0].split()[:5] == ["127.0.0.0/24", "1", "requests", "2", "connections"], who
        assert "2 connections passed unread" in command("log", *state, "--site", "example.org").stdout


def test_the_log_is_switched_and_rotated_while_requests_pass(desk: Desk) -> None:
    desk.folder.joinpath("state").mkdir()
    gone, kept = (desk.folder / "state" / name for name in ("access.log.20200101-000000", "access.log.old"))
    for file in (gone, kept):
        file.write_text("")
        subprocess.run(["touch", "-d", "2020-01-01", file], check=True)
    with Pep(desk.write(), desk.folder, log_requests=False) as pep, ThreadPoolExecutor(1) as pool:
        box = Keyed(desk, pep)
        box.get("/off.png")
        under_way = pool.submit(desk.get, "/_/answer?wait=3000")
        box.switch(access="on", size="4kib", clients="whole")
        assert under_way.result(), "a request that began before the change ends as its origin ends it"
        paths = [f"/{number}.png" for number in range(30)]
        for path in paths:
            box.get(path)
        wait_for("all lines", lambda: len(box.paths()) >= len(paths))
        wait_for("a rotated file", lambda: len(box.files()) > 1 + kept.exists())
        box.get("/after.png")
        wait_for("the line behind the rotation", lambda: "/after.png" in box.paths())
        assert [one for one in box.paths() if one in paths] == paths, "each request once, in all files together"
        assert "/off.png" not in box.paths()
        assert {one["client"] for one in box.lines() if is_of_client(one)} == {"127.0.0.1"}
        assert (gone.exists(), kept.exists()) == (False, True), "`keep` deletes what a rotation made, and nothing else"
        *requests, _ = command("log", "--state", pep.state, "--since", "1h", "--json").stdout.splitlines()
        assert [json.loads(one)["url"].removeprefix(f"http://{WWW}") for one in requests] == box.paths()
        box.switch(access="off")
        box.get("/off-again.png")
        unwritable(box)
        assert "/off-again.png" not in box.paths()


def unwritable(box: Keyed) -> None:
    """Asserts that a log that cannot be written costs the log alone, is a problem with its reason, and is mended."""
    folder = box.desk.folder / "absent"
    file = folder / "access.log"
    before = box.pep.output().count("the access log is not written")
    box.desk.write(log={"access": str(file)})
    wait_for("a warning", lambda: box.pep.output().count("the access log is not written") > before)
    box.get("/unlogged.png")

    def problem() -> bool:
        said = command("status", "--state", box.pep.state).stdout
        return f"the access log cannot be written or rotated: {file}" in said

    wait_for("the problem", problem)
    assert f"cannot be written: {file}: No such file" in command("log", "--state", box.pep.state).stderr
    folder.mkdir()
    box.pep.child.process.send_signal(signal.SIGHUP)
    wait_for("the file", file.exists)
    wait_for("no problem", lambda: not problem())
    box.get("/logged.png")
    wait_for("the line", lambda: "/logged.png" in file.read_text())
    box.switch(access="/dev/full")
    for _ in range(3):
        box.get("/full.png")


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:  # noqa: ARG001 - order of set-up
    with standing_pair(tmp_path_factory.mktemp("log"), profile="leo") as standing:
        standing.pair.until_piped()
        yield standing


def test_both_ends_of_a_pair_log_site_and_path_and_tls_once(bed: PairBed) -> None:
    path = "/packed-headers.bin?q=1"
    assert bed.curl.get(f"http://{LAB}{path}").status == 200
    assert bed.curl.get(f"https://{LISTED}/page.html").status == 200
    remote, ground = bed.pair.remote, bed.pair.ground

    def of(end: Pep, authority: str) -> list[dict[str, Any]]:
        return [one for one in end.requests() if one.get("authority") == authority]

    for end in (remote, ground):
        wait_for("both lines", lambda end=end: of(end, LAB) and of(end, f"{LISTED}:443"))
        [request], [passed] = of(end, LAB), of(end, f"{LISTED}:443")
        assert (request["path"], request["method"], request["status"]) == (path, "GET", 200)
        assert passed["hop"] == "tunnel"
        assert passed["bytes_out"] > passed["bytes_in"] > 0, passed
        assert passed["duration_ms"] > 0
        said = command("log", "--state", end.state, "--site", LAB).stdout
        assert f"http://{LAB}{path}" in said
        assert not [one for one in end.requests() if "pair.invalid" in one.get("authority", "")], "no client sent these"
    near = {one["client"] for authority in (LAB, f"{LISTED}:443") for one in of(remote, authority)}
    assert {one.rpartition("/")[2] for one in near} == {"24"}, near
    for authority in (LAB, f"{LISTED}:443"):
        [line] = of(ground, authority)
        assert "client" not in line, "the remote's client is cut"
        assert line["remote"] not in (FAR, ""), line


def test_a_log_that_is_not_there_is_an_error(folder: Path) -> None:
    absent = command("log", folder / "absent")
    assert absent.returncode == 1
    assert "No such file" in absent.stderr
    assert command("log", "--state", folder).returncode == 3, "nothing runs"
