"""`longhaul log` describes the access log of a running box in words."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from harness.boxes.desk import ANSWER, WWW, Desk
from harness.boxes.pep import Pep, command
from harness.clients.commands import Curl
from harness.host.artifacts import built
from harness.host.waiting import wait_for

SLOW = "/_/answer?wait=700"
HOST = ("-H", f"Host: {WWW}")


def test_the_log_of_the_running_box_names_slow_requests_and_urls_that_stayed(desk: Desk) -> None:
    with Pep(desk.write(), desk.folder) as pep:
        page = f"{ANSWER}&host=bank.example.org&header=Content-Security-Policy:%20img-src%20http://bank.example.org"
        assert b"bank.example.org" in desk.get(page)
        desk.get(SLOW)
        nobody = Curl(desk.folder).get(f"http://127.0.0.1:{desk.http}/", "-H", "Host: absent.example.org")
        assert nobody.status == 502
        wait_for("the requests in the log", lambda: len(pep.requests()) >= 4)
        state = ("--state", pep.state)
        everything = command("log", *state)
        assert everything.returncode == 0, everything.stderr
        assert "failed beyond the cache, the name has no address" in everything.stdout
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
    for log, said in {"off": "--access-log LOG` turns it on", "stderr": "| longhaul log -`"}.items():
        (other / "run.json").write_text(json.dumps({**report, "access_log": log}))
        done = command("log", "--state", other)
        assert done.returncode == 1
        assert said in done.stderr


def test_a_log_that_is_not_there_is_an_error(folder: Path) -> None:
    absent = command("log", folder / "absent")
    assert absent.returncode == 1
    assert "No such file" in absent.stderr
    assert command("log", "--state", folder).returncode == 3, "nothing runs"
