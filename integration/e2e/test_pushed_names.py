"""Names that a ground sends to its remote before a client looks them up (`dns.push`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.boxes.pair import FAIR, REDIRECTS, Ends, Pair, pair
from harness.boxes.pep import parse_metrics
from harness.clients.commands import Curl, dig
from harness.host.waiting import wait_for
from harness.lab import links
from harness.lab.contenders.base import intercept, rules
from harness.lab.line import FAR, NEAR_DEVICE, NEAR_HOME, Line
from harness.net.topology import RESOLVER, SITES
from harness.origins.program import Origins, Site

RTT_S = 0.6
WWW, ALONE, IMAGES, SECURE = "www.pushed.test", "alone.pushed.test", "images.pushed.test", "secure.pushed.test"
ADDRESSES = dict(zip((WWW, ALONE, IMAGES, SECURE), (str(one) for one in SITES.hosts() if str(one) != RESOLVER)))  # noqa: B905 - there are more addresses
PAGES = {
    WWW: f'<img src="http://{IMAGES}/a.svg"><link rel=preconnect href="https://{SECURE}"><a href="http://{ALONE}/">a</a>',
    ALONE: f'<img src="/a.svg"><img src="http://192.0.2.7/a.svg"><a href="http://{WWW}/">a</a>',
}
ACCEPT = ("--header", "Accept: text/html,*/*;q=0.8", "--header", "Accept-Encoding: gzip")


@dataclass
class Bed:
    """A pair on the link of a satellite, and the origins behind it."""

    folder: Path
    line: Line
    pair: Pair

    def counted(self, name: str) -> float:
        """Returns a counter of the remote's CoreDNS."""
        page = parse_metrics(self.pair.remote.page("http://127.0.0.1:9153/metrics"))
        return sum(value for key, value in page.items() if key.startswith("coredns_remember_") and name in key)

    def kept(self) -> float:
        """Returns the number of responses that the remote kept before a client asked."""
        return self.counted('pushed_total{fate="kept"')

    def told(self) -> float:
        """Returns the number of lists of hosts that the ground's filter handed to CoreDNS."""
        return self.pair.ground.metrics().get('longhaul_bundling_names_total{reason="taken"}', 0)

    def open(self, host: str) -> None:
        """Looks a host up and gets its page, as a client."""
        answer = Curl(self.folder, self.line.clients).get(f"http://{host}/page.html", *ACCEPT)
        assert (answer.status, answer.problem) == (200, ""), answer


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:  # noqa: ARG001 - order of set-up
    folder = tmp_path_factory.mktemp("pushed")
    site = Site(dns=[f"{RESOLVER}:53"])
    for host, address in ADDRESSES.items():
        root = folder / host
        root.mkdir()
        (root / "page.html").write_text(f"<!doctype html><title>{host}</title>{PAGES.get(host, '')}")
        site.hosts[host] = {"address": address, "root": str(root)}
    with ExitStack() as stack:
        line = stack.enter_context(Line(folder, "geo", seed=1))
        stack.enter_context(Origins(site.write(folder / "site.json"), folder, line.internet))
        ends = Ends(line.near, NEAR_HOME, line.gateway, FAR)
        setting = FAIR | links.link("geo").setting
        both = stack.enter_context(pair(folder, ends, setting, steered=(), page={"bundle": True}))
        stack.enter_context(rules(line.near, intercept(NEAR_DEVICE, *REDIRECTS)))
        both.until_names_come()
        yield Bed(folder, line, both)


def test_the_hosts_that_a_page_names_come_before_a_browser_looks_them_up(bed: Bed) -> None:
    told, kept = bed.told(), bed.kept()
    # This page names itself, an address, and a link to follow.
    bed.open(ALONE)
    bed.open(WWW)
    # Two hosts, each with an address and an HTTPS record.
    wait_for("the pushed responses", lambda: bed.kept() >= kept + 4, timeout_s=10)
    used = bed.counted('hits_total{age="pushed"')
    for host in (IMAGES, SECURE):
        answer = dig(host, "A", RESOLVER, namespace=bed.line.clients)
        assert answer.addresses() == [ADDRESSES[host]], answer
        assert answer.seconds < RTT_S / 2, answer
    assert bed.counted('hits_total{age="pushed"') == used + 2
    assert (bed.told(), bed.kept()) == (told + 1, kept + 4)
