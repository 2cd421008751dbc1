"""A pair over a link so slow that opening a connection costs more than it saves: everything shares the pipe."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from experiments.contenders.base import intercept, rules
from experiments.line import FAR, NEAR_DEVICE, NEAR_HOME, Line
from experiments.links import link
from harness.authority import Authority
from harness.clients import Curl, dig
from harness.origins import Origins, Site
from harness.pair import Ends, Pair, pair
from harness.topology import RESOLVER, SITES
from harness.waiting import wait_for

LINK = "cdma-average"
TODAY, LISTED = "today.example.org", [f"listed-{number}.example.org" for number in range(12)]


@dataclass
class SlowBed:
    """Everything that stands."""

    line: Line
    site: Site
    pair: Pair
    curl: Curl

    def opened(self) -> int:
        """TCP connections opened over the link since it was last reset."""
        return self.counted()["tcp"]["connections"]

    def counted(self) -> dict[str, Any]:
        """What crossed the link since it was last reset."""
        assert self.line.link
        return self.line.link.statistics()

    def reset(self) -> None:
        """Counts from here."""
        assert self.line.link
        self.line.link.reset()


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlowBed]:  # noqa: ARG001 - order of set-up
    folder = tmp_path_factory.mktemp("slow-pair")
    authority = Authority(folder)
    site = Site(dns=[f"{RESOLVER}:53"], https_port=443, ca=authority.files.as_dict())
    addresses = (str(one) for one in SITES.hosts() if str(one) != RESOLVER)
    for name in (TODAY, *LISTED):
        site.hosts[name] = {"address": next(addresses), "generate": True}
    lines = [f"tcp dport {port} redirect to :{port}" for port in (80, 443, 53)]
    with ExitStack() as stack:
        line = stack.enter_context(Line(folder, LINK, seed=1))
        stack.enter_context(Origins(site.write(folder / "site.json"), folder, line.internet))
        ends = Ends(line.near, NEAR_HOME, line.gateway, FAR)
        trusted = authority.files.cert
        both = stack.enter_context(pair(folder, ends, link(LINK).setting, trusted=trusted, steered=LISTED))
        stack.enter_context(rules(line.near, intercept(NEAR_DEVICE, *lines, "udp dport 53 redirect to :53")))
        wait_for("the pipe", lambda: both.connections("pipe")["active"] >= 1, timeout_s=60, interval_s=0.2)
        yield SlowBed(line, site, both, Curl(folder, line.clients, "--cacert", str(trusted)))


def test_tls_is_carried_by_the_pipe_and_stays_the_origins_own(bed: SlowBed) -> None:
    bed.reset()
    address = bed.site.hosts[TODAY]["address"]
    answer = bed.curl.get(f"https://{TODAY}/x.bin", "--range", "0-99", "--resolve", f"{TODAY}:443:{address}")
    # curl trusts the origins' authority alone: nobody else could have ended this connection.
    assert answer.status in (200, 206), answer
    assert bed.opened() == 0


def test_names_are_asked_over_the_pipe(bed: SlowBed) -> None:
    bed.reset()
    answer = dig(TODAY, "A", RESOLVER, namespace=bed.line.clients)
    assert answer.addresses() == [bed.site.hosts[TODAY]["address"]]
    assert bed.opened() == 0
    assert bed.counted()["dns"]["queries"] == 0, "nothing but the pipe crosses the link"


def test_the_names_of_a_page_are_answered_at_once_and_checked_without_a_connection_each(bed: SlowBed) -> None:
    bed.reset()
    with ThreadPoolExecutor(len(LISTED)) as pool:
        answers = list(pool.map(lambda name: dig(name, "A", RESOLVER, namespace=bed.line.clients), LISTED))
    assert [answer.addresses() for answer in answers] == [[NEAR_HOME]] * len(LISTED)
    answer = bed.curl.get(f"http://{LISTED[0]}/x.bin", "--range", "0-99")
    assert answer.status in (200, 206), answer
    assert bed.opened() == 0
