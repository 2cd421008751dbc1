"""`longhaul netcheck` at both ends of a pair: it names each staged fault with its cure, and the cure mends it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from e2e.pair_bed import LAB, LISTED, TODAY, PairBed, pair_site
from harness.boxes.bug_report import bug_report, secrets
from harness.boxes.pair import REMOTE_NAME, Ends, pair
from harness.boxes.pep import Pep
from harness.clients.commands import Answer
from harness.host.artifacts import built
from harness.lab import links
from harness.lab.contenders.base import rules
from harness.lab.line import FAR, NEAR_DEVICE, NEAR_HOME, Line
from harness.net.authority import Authority
from harness.net.namespaces import Namespace
from harness.origins.program import Origins, Site

MOST_SECONDS = 20
PROFILE = "rural-lte"
LARGEST = 1280
OBJECT_BYTES = 200_000
HOLE = """chain hole {{
    type filter hook prerouting priority raw
    iifname "{device}" meta length > {largest} drop
}}"""
"""A tunnel on the way: the receiver never gets larger packets, and no ICMP message says so."""
DROPS = """chain input {
    type filter hook input priority filter; policy drop
    ct state established,related accept
    iifname lo accept
}"""
REDIRECTS = """chain prerouting {
    type nat hook prerouting priority -101
    tcp dport 80 redirect to :3128
}"""


@dataclass
class Bed:
    """The line with its origins, and at most one pair on it."""

    folder: Path
    line: Line
    site: Site
    origins: Origins
    authority: Authority

    @contextmanager
    def pair(self, **link: Any) -> Iterator[PairBed]:
        """Runs a pair with the packet rules that `longhaul host` makes. `link` adds keys to that section."""
        ends = Ends(self.line.near, NEAR_HOME, self.line.gateway, FAR)
        setting = {**links.link(PROFILE).setting, **link}
        with pair(self.folder, ends, setting, trusted=self.authority.files.cert, steered=(LISTED,)) as both:
            record = self.folder / "host.json"
            host = [built("longhaul"), "host", both.remote.config, "--clients", NEAR_DEVICE, "--record", record]
            self.line.near.run(*host, "--apply")
            try:
                both.until_piped()
                yield PairBed(self.folder, self.line, self.site, self.origins, self.authority, both)
            finally:
                self.line.near.run(built("longhaul"), "host", "--undo", "--record", record)

    @contextmanager
    def tunnel(self) -> Iterator[None]:
        """Lets packets above `LARGEST` vanish in both directions."""
        near = HOLE.format(device="sky0", largest=LARGEST)
        far = HOLE.format(device="lan0", largest=LARGEST)
        with rules(self.line.near, near, table="tunnel"), rules(self.line.gateway, far, table="tunnel"):
            yield


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:  # noqa: ARG001 - order of set-up
    folder = tmp_path_factory.mktemp("netcheck")
    authority = Authority(folder)
    site = pair_site(authority)
    with (
        Line(folder, PROFILE, seed=1) as line,
        Origins(site.write(folder / "site.json"), folder, line.internet) as origins,
    ):
        yield Bed(folder, line, site, origins, authority)


@dataclass(frozen=True)
class Checked:
    """The result of a run of `longhaul netcheck`."""

    code: int
    seconds: float
    checks: list[dict[str, Any]]

    def of(self, check: str) -> list[dict[str, Any]]:
        return [one for one in self.checks if one["check"] == check]

    def errors(self) -> dict[str, str]:
        return {one["check"]: one["text"] for one in self.checks if one["verdict"] == "error"}


def netcheck(place: Namespace, pep: Pep) -> Checked:
    """Runs it beside the box, and asserts that it ends in time."""
    command = [built("longhaul"), "netcheck", pep.config, "--state", pep.state, "--name", TODAY, "--json"]
    began = time.monotonic()
    done = place.run(*command, check=False, timeout_s=60)
    seconds = time.monotonic() - began
    assert done.stdout, done.stderr
    assert seconds < MOST_SECONDS
    answer = json.loads(done.stdout)
    assert answer["ok"] == (done.returncode == 0)
    return Checked(done.returncode, seconds, answer["checks"])


def https_object(standing: PairBed, timeout_s: float) -> Answer:
    """Loads an object that nothing on the way can make smaller, because it is encrypted."""
    own = ("--resolve", f"{LAB}:443:{standing.address(LAB)}")
    return standing.curl.get(f"https://{LAB}/_/answer?size={OBJECT_BYTES}", *own, timeout_s=timeout_s)


def test_a_pair_that_works_has_no_error_and_each_staged_fault_is_named_with_its_cure(bed: Bed) -> None:
    near = bed.line.near
    with bed.pair() as standing:
        remote = standing.pair.remote
        well = netcheck(near, remote)
        assert (well.code, well.errors()) == (0, {}), well
        assert "Longhaul has them" in well.of("ports")[0]["text"]
        assert "full size" in well.of("mtu")[0]["text"]
        for check in ("handshake", "clock", "rtt", "rate", "firewall", "forwarding", "resolver"):
            assert well.of(check)[0]["verdict"] == "ok", well.of(check)
        far = netcheck(bed.line.gateway, standing.pair.ground)
        assert (far.code, far.errors()) == (0, {}), far
        assert far.of("resolver")[0]["verdict"] == far.of("clock")[0]["verdict"] == "ok", far

        near.sysctl("net.ipv4.ip_forward", 0)
        with rules(near, DROPS, REDIRECTS, table="foreign"):
            faults = netcheck(near, remote)
        near.sysctl("net.ipv4.ip_forward", 1)
        assert "net.ipv4.ip_forward is 0" in faults.errors()["forwarding"], faults
        redirected, dropped = faults.of("firewall")
        assert "redirects TCP 80 before Longhaul's rules" in redirected["text"], redirected
        assert "(policy drop) drops TCP 53, 80, 443 and UDP 53" in dropped["text"], dropped
        assert f'iifname "{NEAR_DEVICE}" tcp dport' in dropped["cure"], dropped

        with bed.tunnel():
            hole = netcheck(near, remote)
            assert https_object(standing, timeout_s=5).problem, "nothing vanishes: nothing was tested"
        vanish = f"packets of {LARGEST} bytes pass, and larger ones vanish: pages hang"
        # The remote's certificate does not arrive either.
        assert set(hole.errors()) <= {"mtu", "handshake"}, hole
        assert hole.errors()["mtu"] == vanish, hole
        assert hole.of("mtu")[0]["cure"].startswith(f"write `mtu: {LARGEST}` into `link`"), hole


def test_the_size_that_netcheck_names_lets_pages_pass(bed: Bed) -> None:
    with bed.tunnel(), bed.pair(mtu=LARGEST) as standing:
        whole = https_object(standing, timeout_s=30)
        assert (whole.status, len(whole.body)) == (200, OBJECT_BYTES), whole.problem
        standing.uploads(100_000, timeout_s=30)
        # Both ends send smaller segments, whichever of them has the key.
        for place in (bed.line.near, bed.line.gateway):
            shown = place.run("ss", "-tinH", "state", "established", "( sport = 8443 or dport = 8443 )").stdout
            # Less the headers of IPv6 and TCP, and the time stamps in each segment.
            assert set(re.findall(r"\b(?:adv)?mss:(\d+)", shown)) == {str(LARGEST - 60 - 12)}
        # Traffic has crossed the pair, and its bug reports show none of it.
        for pep, place in ((standing.pair.remote, bed.line.near), (standing.pair.ground, bed.line.gateway)):
            assert secrets(bug_report(pep, place, bed.folder), [REMOTE_NAME.partition(".")[0]]) == []
        checked = netcheck(bed.line.near, standing.pair.remote)
        assert checked.of("mtu")[0]["text"] == f"packets of `link.mtu: {LARGEST}` pass", checked
