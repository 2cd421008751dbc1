"""`longhaul status` and the status page: each problem appears soon after its cause, and none without one. No foreign
script runs."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from harness.boxes.desk import ANSWER, Desk
from harness.boxes.pep import Pep, command, write_config
from harness.browsers.chromium import browser, console_of
from harness.clients.commands import Answer, Curl
from harness.host.artifacts import REPOSITORY
from harness.host.ports import free_ports
from harness.host.waiting import Timeout, wait_for
from harness.net.authority import Authority, KeyFiles, issue_as_written
from harness.origins.name_server import NameServer
from harness.pictures.screens import save

SOON_S = 10.0
"""The longest time from a cause to its problem."""
NAME = "pep.example.net"
WELL = "Everything works."
SHOT = REPOSITORY / "target" / "screens" / "status.png"
PHONE_SHOT = SHOT.with_stem("status-phone")
PHONE = (360, 740)
"""The width and height of a phone's screen."""


class Box:
    """A running box with a status page, a certificate and a second resolver."""

    def __init__(self, desk: Desk, page: int, certificate: KeyFiles, second: int) -> None:
        self.desk = desk
        self.page_port = page
        self.certificate = certificate
        config = desk.config
        (tls,) = free_ports(1)
        self.changes: dict[str, Any] = {
            "proxy": {**config["proxy"], "secure_names": [NAME]},
            "listen": {**config["listen"], "tls": f"127.0.0.1:{tls}", "status": f"127.0.0.1:{page}"},
            "upstream": {
                **config["upstream"], "resolvers": [*config["upstream"]["resolvers"], f"127.0.0.1:{second}"],
            },
            "tls": {"terminate": [{"names": [NAME], **certificate.as_dict()}]},
        }  # fmt: skip
        self.curl = Curl(desk.folder)

    def get(self, path: str = "/", *options: str) -> Answer:
        return self.curl.get(f"http://127.0.0.1:{self.page_port}{path}", *options)

    def status(self, state: Path) -> tuple[int, dict[str, Any]]:
        done = command("status", "--state", state, "--json")
        return done.returncode, json.loads(done.stdout)

    def shows(self, text: str) -> None:
        """Waits until the page shows the text."""
        try:
            wait_for(f"{text!r} on the page", lambda: text.encode() in self.get().body, SOON_S, interval_s=0.2)
        except Timeout as timeout:
            shown = json.loads(self.get("/status.json").body or b"{}")
            raise Timeout(f"{timeout}; the problems are {shown.get('problems')}") from None


def test_each_problem_shows_within_ten_seconds_of_its_cause_and_goes_with_it(desk: Desk) -> None:
    page, second = free_ports(2)
    authority = Authority(desk.folder)
    good = authority.issue(NAME)
    spare = [shutil.copy(path, f"{path}.good") for path in (good.cert, good.key)]
    # Two of 31 days are left.
    ending = issue_as_written(desk.folder / "ending", authority.files, NAME, starts_in_days=-29)
    box = Box(desk, page, good, second)

    def put(cert: str | Path, key: str | Path) -> None:
        for source, target in ((key, good.key), (cert, good.cert)):
            shutil.copy(source, f"{target}.new")
            Path(f"{target}.new").rename(target)

    with Pep(desk.write(**box.changes), desk.folder) as pep:
        with NameServer(lambda *_: "NXDOMAIN", port=second):
            box.shows(WELL)
            code, status = box.status(pep.state)
            assert (code, status["problems"], status["warnings"]) == (0, [], [])
            assert command("status", "--state", pep.state).stdout.startswith("ok\n")
            assert json.loads(box.get("/status.json").body)["problems"] == []

            desk.write(**{**box.changes, "rewrite": {"level": "sfae"}})
            box.shows("Problem: the present files were refused")
            desk.write(**box.changes)
            box.shows(WELL)

            put(ending.cert, ending.key)
            box.shows(f"Problem: the certificate of {NAME} ends in ")
            assert box.status(pep.state)[0] == 1
            put(*spare)
            box.shows(WELL)

            for name, problem in (("coredns", "CoreDNS does not respond"), ("envoy", "Envoy does not respond")):
                pid = box.status(pep.state)[1][name]["pid"]
                os.kill(pid, signal.SIGSTOP)
                try:
                    box.shows(f"Problem: {problem}")
                    code, status = box.status(pep.state)
                    assert (code, problem in status["problems"]) == (1, True), status["problems"]
                finally:
                    os.kill(pid, signal.SIGCONT)
                box.shows(WELL)
        box.shows(f"Problem: the resolver 127.0.0.1:{second} ")
        assert box.status(pep.state)[0] == 1
        with NameServer(lambda *_: "NXDOMAIN", port=second):
            box.shows(WELL)


def test_the_page_serves_nobody_elses_name_and_changes_nothing(desk: Desk) -> None:
    (page,) = free_ports(1)
    changes = {"listen": {**desk.config["listen"], "status": f"127.0.0.1:{page}"}}
    with Pep(desk.write(**changes), desk.folder):
        at = f"http://127.0.0.1:{page}"
        curl = Curl(desk.folder)
        shown = curl.get(f"{at}/")
        assert shown.status == 200
        fields = {name.lower(): value for name, value in shown.headers}
        assert fields["content-security-policy"].startswith("default-src 'none'; ")
        assert (fields["x-content-type-options"], fields["cache-control"]) == ("nosniff", "no-store")
        assert curl.get(f"{at}/", "-H", "Host: evil.test").status == 421
        assert curl.get(f"{at}/status.json", "-H", "Host: evil.test").status == 421
        assert curl.get(f"{at}/", "-X", "POST", "-d", "x").status == 405
        assert curl.get(f"{at}/quitquitquit").status == 404


def test_the_last_pages_appear_by_number_without_any_name(desk: Desk) -> None:
    (page,) = free_ports(1)
    changes = {"listen": {**desk.config["listen"], "status": f"127.0.0.1:{page}"}}
    # The page needs no access log.
    with Pep(desk.write(**changes), desk.folder, log_requests=False) as pep:
        curl = Curl(desk.folder)

        def last() -> list[dict[str, Any]]:
            return json.loads(curl.get(f"http://127.0.0.1:{page}/status.json").body)["last_pages"]

        assert (last(), b"Last pages" in curl.get(f"http://127.0.0.1:{page}/").body) == ([], False)
        csp = "&header=Content-Security-Policy:%20img-src%20http://bank.example.org"
        desk.get(f"{ANSWER}&host=bank.example.org{csp}")
        desk.get(ANSWER)
        desk.get("/no-page.png")
        at = f"http://127.0.0.1:{desk.http}/"
        hostile = "<script>x</script>.example.org"
        for host, accept in (
            ("absent.example.org", "text/html,*/*"),
            ("absent.example.org", "image/png"),
            (hostile, "text/html"),
        ):
            assert curl.get(at, "-H", f"Host: {host}", "-H", f"Accept: {accept}").status >= 400
        wait_for("the pages", lambda: len(last()) >= 3, SOON_S, interval_s=0.2)
        pages = {one["number"]: one for one in last()}
        assert (pages[1]["outcome"], pages[1]["left"]) == ("rewritten", [["csp", 1]]), pages
        assert (pages[2]["outcome"], pages[2]["moved"] > 0, pages[2]["status"]) == ("rewritten", True, 200), pages
        assert pages[2]["duration_ms"] >= pages[2]["first_byte_ms"]
        assert (pages[3]["outcome"], pages[3]["status"]) == ("failed", 502), pages
        shown = curl.get(f"http://127.0.0.1:{page}/").body.decode()
        assert "Last pages" in shown
        assert "csp 1" in shown
        for name in ("example.org", "/_/answer", "127.0.0.1:50", "<script>x"):
            assert name not in json.dumps(last()), name
        assert "<script>x" not in shown
        assert "@page" not in pep.output()


def test_a_browser_shows_problems_by_itself_and_runs_no_script_of_hostile_names(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (page,) = free_ports(1)
    attack = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'<\\script>"
    hostile = desk.folder / attack
    hostile.mkdir()
    config = {**desk.config, "listen": {**desk.config["listen"], "status": f"127.0.0.1:{page}"}}
    path = write_config(hostile, config, steered=["example.org"])
    # The path of a browser's socket must be short.
    with Pep(path, desk.folder), browser(tmp_path_factory.mktemp("page")) as fresh:
        url = f"http://127.0.0.1:{page}/"
        save(fresh.load(url).screenshot, SHOT)
        save(fresh.load(url, viewport=PHONE).screenshot, PHONE_SHOT)
        with fresh.tab() as tab:
            tab.navigate(url, timeout_s=30, settle_s=0.2)
            assert tab.evaluate("document.title").endswith(": Longhaul edge: ok")
            assert attack in tab.evaluate("document.body.innerText")
            write_config(hostile, {**config, "rewrite": {"level": "</pre><script>document.title='owned'</script>"}})
            seen = "document.getElementById('state').innerText"
            wait_for("the problem", lambda: "refused" in tab.evaluate(seen), SOON_S, interval_s=0.2)
            assert tab.evaluate("document.title").endswith(": Longhaul edge: problem")
            assert "<script>document.title='owned'</script>" in tab.evaluate("document.body.innerText")
            assert tab.evaluate("document.querySelectorAll('img, main script').length") == 0
            assert list(console_of(tab.events())) == []


@pytest.mark.parametrize("path", ["/page.js", "/page.css"])
def test_the_page_needs_no_other_server(path: str) -> None:
    source = REPOSITORY / "envoy-config" / "observe" / "src" / "status" / "page" / path.lstrip("/")
    assert "://" not in source.read_text()
