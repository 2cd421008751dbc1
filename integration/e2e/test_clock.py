"""Envoy's wall clock jumps. Cached objects are requested again or stay cached longer, and certificates are validated
against the new time. Transfers under way continue, because timers use a clock that does not jump.

CoreDNS is a static Go program, and only the machine's clock could change its time. envoy-config/FAULTS.md says why it
would not notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.boxes.pep import Pep, write_config
from harness.clients.commands import Answer, Curl
from harness.host.artifacts import built, need_commands
from harness.host.clock import Clock
from harness.host.ports import free_ports
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.origins.program import Origins, Site

PLAIN, KNOWN, NEW = "www.example.org", "known.example.org", "new.example.org"
FORTY_DAYS_S = 40 * 24 * 3600
"""Longer than the freshness lifetime of the origins' objects (a day), and longer than their certificates are valid
(from an hour ago, for thirty days)."""


@dataclass
class Timepiece:
    """A box whose Envoy has its own clock. Its sites are one over http and two over https."""

    clock: Clock
    pep: Pep
    origins: Origins
    curl: Curl
    http: int
    tls: int

    def plain(self, path: str) -> Answer:
        return self.curl.get(f"http://127.0.0.1:{self.http}{path}", "-H", f"Host: {PLAIN}")

    def secure(self, name: str, path: str = "/_/answer?size=10") -> Answer:
        return self.curl.get(f"https://{name}{path}", "--connect-to", f"{name}:443:127.0.0.1:{self.tls}")

    def asked(self, path: str, name: str = PLAIN) -> int:
        return len(self.origins.requests(host=name, target=path))

    def is_well(self) -> bool:
        return self.plain("/_/answer?size=10").status == 200 and "starting it again" not in self.pep.output()


@pytest.fixture
def timepiece(folder: Path) -> Iterator[Timepiece]:
    need_commands("curl")
    for name in ("longhaul", "coredns", "url_rewrite.wasm", "envoy", "origins"):
        built(name)
    port, tls, dns, metrics, origin_http, origin_https, origin_dns = free_ports(7)
    authority = Authority(folder)
    site = Site(
        dns=[f"127.0.0.1:{origin_dns}"], http_port=origin_http, https_port=origin_https, ca=authority.files.as_dict(),
        hosts={
            name: {"address": f"127.78.2.{number}", "special": True, "generate": True}
            for number, name in enumerate((PLAIN, KNOWN, NEW), 1)
        },
    )  # fmt: skip
    where = {PLAIN: f"127.78.2.1:{origin_http}", KNOWN: f"127.78.2.2:{origin_https}", NEW: f"127.78.2.3:{origin_https}"}
    config = {
        "link": {"rtt": "600ms", "down": "20mbit", "up": "5mbit"},
        "proxy": {"addresses": ["127.0.0.1"]},
        "listen": {
            "http": f"127.0.0.1:{port}", "tls": f"127.0.0.1:{tls}", "dns": f"127.0.0.1:{dns}",
            "metrics": f"127.0.0.1:{metrics}", "intercept": "none",
        },
        "upstream": {"resolvers": [f"127.0.0.1:{origin_dns}"], "map": where},
        "tls": {"terminate": [{"names": [name], **authority.issue(name).as_dict()} for name in (KNOWN, NEW)]},
        "cache": {"dir": str(folder / "cache"), "size": "16mib"},
    }  # fmt: skip
    clock = Clock(folder)
    with (
        Origins(site.write(folder / "site.json"), folder) as origins,
        Pep(
            write_config(folder, config, ["example.org"]), folder,
            trusted=authority.files.cert, options=["--envoy", clock.envoy, "--objects", clock.objects],
        ) as pep,
    ):  # fmt: skip
        curl = Curl(folder, None, "--cacert", str(authority.files.cert))
        yield Timepiece(clock, pep, origins, curl, port, tls)


def jump_while_a_page_flows(timepiece: Timepiece, ahead_s: int) -> None:
    """Lets the clock jump while a page is under way, and asserts that the page arrives whole. The certificate of an
    open connection is not validated again."""
    slow = "/_/answer?size=2000&chunk=500&pause=400"
    with ThreadPoolExecutor() as pool:
        under_way = pool.submit(timepiece.secure, KNOWN, slow)
        wait_for("the page to be under way", lambda: timepiece.asked(slow, KNOWN))
        timepiece.clock.jump(ahead_s)
        answer = under_way.result()
    assert (answer.status, answer.problem) == (200, "")
    assert answer.seconds < 10, "timers went with the clock"


def keep(timepiece: Timepiece, path: str) -> bytes:
    """Makes the box cache an object. Later requests do not reach the origin."""
    body = timepiece.plain(path).body
    # A request that comes before the object is stored still reaches the origin.
    wait_for("it to be kept", lambda: timepiece.plain(path).header("age") is not None)
    asked = timepiece.asked(path)
    assert timepiece.plain(path).body == body
    assert timepiece.asked(path) == asked
    return body


def certificates_are_refused_until_it_is_over(timepiece: Timepiece, why: bytes) -> None:
    """Asserts that only connections to a new origin are refused, and that they succeed when the clock is right
    again."""
    refused = timepiece.secure(NEW)
    assert refused.status == 502
    assert why in refused.body, refused.body
    assert timepiece.is_well()
    timepiece.clock.jump(0)
    wait_for("origins to be believed again", lambda: timepiece.secure(NEW).status == 200)


def test_a_jump_ahead_makes_kept_objects_and_certificates_old_and_nothing_else(timepiece: Timepiece) -> None:
    body = keep(timepiece, "/kept.png")
    asked = timepiece.asked("/kept.png")
    jump_while_a_page_flows(timepiece, FORTY_DAYS_S)
    again = timepiece.plain("/kept.png")
    assert (again.status, again.body) == (200, body)
    assert timepiece.asked("/kept.png") == asked + 1, "too old by the new time: the origin is asked again"
    certificates_are_refused_until_it_is_over(timepiece, b"certificate_has_expired")


def test_a_jump_back_validates_objects_and_refuses_certificates_that_are_not_valid_yet(timepiece: Timepiece) -> None:
    body = keep(timepiece, "/kept.png")
    asked = timepiece.asked("/kept.png")
    jump_while_a_page_flows(timepiece, -FORTY_DAYS_S)
    again = timepiece.plain("/kept.png")
    assert (again.status, again.body) == (200, body)
    assert timepiece.asked("/kept.png") == asked + 1, "nobody knows how old it is"
    certificates_are_refused_until_it_is_over(timepiece, b"certificate_is_not_yet_valid")
