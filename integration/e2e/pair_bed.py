"""The bed of the pair's tests: a link with a remote and a ground on its ends, and origins behind it. The link is a
satellite's by default."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.bed import made_to_order
from harness.boxes.pair import FAIR, GROUND_NAME, REDIRECTS, REMOTE_NAME, Ends, Pair, pair
from harness.browsers.chromium import browser
from harness.clients.commands import Curl, DnsAnswer, dig
from harness.host.artifacts import need_commands
from harness.host.processes import of_program
from harness.host.waiting import wait_for
from harness.lab import links
from harness.lab.contenders.base import intercept, rules
from harness.lab.line import FAR, NEAR, NEAR_DEVICE, NEAR_HOME, Line
from harness.lab.quiet import wait_until_quiet
from harness.net.authority import Authority
from harness.net.topology import FORBIDDEN, RESOLVER, SITES
from harness.origins.program import Origins, Site

RTT_S = 0.6
LAB, TODAY = "lab.example.org", "today.example.org"
SOCKETS = "sockets.example.org"
LISTED, GONE = "listed.example.org", "gone.example.org"
"""Names that the remote steers at once, without a query over the link. The second does not exist."""
PLAIN = "plain.example.org"
"""Its server refuses connections to port 443."""
WARM = 32


@dataclass
class PairBed:
    """The pair, the link and the origins, all of them running."""

    folder: Path
    line: Line
    site: Site
    origins: Origins
    authority: Authority
    pair: Pair

    @property
    def curl(self) -> Curl:
        """A client of the remote."""
        return Curl(self.folder, self.line.clients, "--cacert", str(self.authority.files.cert))

    def address(self, host: str) -> str:
        """Returns the true address of an origin."""
        return self.site.hosts[host]["address"]

    def original(self, url: str) -> bytes:
        """Returns the body that the origin sends without Longhaul."""
        host = url.split("/")[2]
        return Curl(self.folder, self.line.internet).get(url, "--resolve", f"{host}:80:{self.address(host)}").body

    def dig(self, name: str, kind: str) -> DnsAnswer:
        """Sends a client's query to its resolver, which is the remote."""
        return dig(name, kind, RESOLVER, namespace=self.line.clients)

    def downloads(self, size: int, timeout_s: float = 60.0) -> None:
        """Downloads a response of this size as a client, and asserts that it is whole."""
        answer = self.curl.get(made_to_order(LAB, size=size), timeout_s=timeout_s)
        assert (answer.status, len(answer.body), answer.problem) == (200, size, "")

    def uploads(self, size: int, timeout_s: float = 60.0) -> None:
        """Uploads a body of this size as a client."""
        body = self.folder / "upload.bin"
        body.write_bytes(b"u" * size)
        sent = self.curl.get(f"http://{LAB}/_/echo", "--data-binary", f"@{body}", timeout_s=timeout_s)
        assert sent.status == 200, sent

    def packs_headers(self) -> None:
        """Asserts that the headers of similar requests shrink to less than a third on the link."""
        before = self.pair.packed()
        for number in range(10):
            assert self.curl.get(f"http://{LAB}/packed-{number}.bin").status == 200
        after = self.pair.packed()
        plain, packed = (after[key] - before[key] for key in ("plain", "packed"))
        assert packed < plain / 3, f"{plain:.0f} bytes became {packed:.0f}"

    def load_in_chromium(self, host: str) -> None:
        """Asserts that a browser gets a page of the host whole, over http and over https."""
        need_commands("chromium", "certutil")
        with browser(self.folder, self.line.clients, self.authority) as fresh:
            for scheme in ("http", "https"):
                load = fresh.load(f"{scheme}://{host}/page.html")
                assert load.requests, scheme
                # The load event does not wait for the icon.
                failed = [one for one in load.failed() if "favicon" not in one.url]
                assert not failed, (scheme, failed, load.console)

    def is_told(self, within_s: float) -> float:
        """Asserts that a client gets the error page of a link that is down. Returns the seconds until it came."""
        # The client knows the address. The remote would have to send a query for the name to the ground.
        known = ("--resolve", f"{LAB}:80:{self.address(LAB)}")
        answer = self.curl.get(f"http://{LAB}/away.bin", *known, timeout_s=within_s)
        assert (answer.status, b"the link is down" in answer.body) == (503, True), answer
        return answer.seconds

    def kill_ground(self) -> None:
        """Kills the ground's Envoy. `longhaul run` starts another one."""
        (envoy,) = of_program("envoy", self.line.gateway.processes())
        os.kill(envoy, signal.SIGKILL)

    def until_warm(self) -> None:
        """Waits until the pipe is open, and `WARM` connections or streams that no client uses. The ground has responded
        on all of them."""
        self.pair.until_piped()
        wait_for("warm connections or streams", self._all_stand, timeout_s=60, interval_s=0.2)
        assert self.line.link
        assert wait_until_quiet(self.line.link, RTT_S * 1000)

    def _all_stand(self) -> bool:
        warm = self.pair.connections("warm")
        return warm["unused"] >= WARM and warm["opening"] <= 0

    def counted(self) -> dict[str, Any]:
        """Returns what the link has counted since its counters started."""
        assert self.line.link
        return self.line.link.statistics()

    def opened(self) -> int:
        """Returns the number of TCP connections opened over the link since its counters started."""
        return self.counted()["tcp"]["connections"]


@contextmanager
def standing_pair(
    folder: Path,
    *,
    profile: str = "geo",
    link: dict[str, str] | None = None,
    steered: Sequence[str] = (LISTED, GONE),
    records: dict[str, list[str]] | None = None,
    fill: str = FAIR["fill"],
    **split: Any,
) -> Iterator[PairBed]:
    """Sets up the bed. `link` changes values of the emulated link's profile, and `split` changes keys of the remote's
    section. `records` adds names that no origin has. `fill` is `link.fill` of both ends."""
    authority = Authority(folder)
    site = pair_site(authority)
    site.records |= records or {}
    with ExitStack() as stack:
        line = stack.enter_context(Line(folder, profile, seed=1, changes=link))
        origins = stack.enter_context(Origins(site.write(folder / "site.json"), folder, line.internet))
        ends = Ends(line.near, NEAR_HOME, line.gateway, FAR)
        setting, trusted = {"fill": fill} | links.link(profile).setting, authority.files.cert
        both = stack.enter_context(pair(folder, ends, setting, trusted=trusted, steered=steered, **split))
        stack.enter_context(rules(line.near, intercept(NEAR_DEVICE, *REDIRECTS)))
        yield PairBed(folder, line, site, origins, authority, both)


def pair_site(authority: Authority) -> Site:
    """Returns the origins and names of the bed."""
    addresses = (str(one) for one in SITES.hosts() if str(one) != RESOLVER)
    site = Site(dns=[f"{RESOLVER}:53"], https_port=443, ca=authority.files.as_dict())
    site.hosts[LAB] = {"address": next(addresses), "special": True, "generate": True}
    site.hosts[TODAY] = {"address": next(addresses), "generate": True, "aaaa": "2001:db8::5", "https_record": True}
    site.hosts[LISTED] = {"address": next(addresses), "generate": True, "aaaa": "2001:db8::7"}
    site.hosts[SOCKETS] = {"address": next(addresses), "generate": True}
    for number in range(28):
        site.hosts[f"h{number}.example.org"] = {"address": next(addresses), "generate": True}
    site.records = {name: [address] for name, address in FORBIDDEN.items()} | {GROUND_NAME: [FAR], REMOTE_NAME: [NEAR]}
    site.records[PLAIN] = [RESOLVER]
    return site
