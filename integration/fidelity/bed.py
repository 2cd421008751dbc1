"""The bed of the fidelity runs: clients behind Longhaul, a client beside it, saved pages and the project's own
pages."""

from __future__ import annotations

import itertools
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from harness.boxes.bed import Bed
from harness.boxes.pep import PROXY_NAME
from harness.host.processes import Child
from harness.net.authority import Authority
from harness.net.namespaces import Namespace, veth
from harness.net.topology import PROXY, RESOLVER, SITES
from harness.origins.pages import Page
from harness.origins.program import Site

from .sitefile import SiteFile

HERE = Path(__file__).resolve().parent
BREAKAGES = HERE / "breakages"

OUR_SITES = str(SITES[-2])
"""The address of the project's own pages. All other addresses of the range belong to saved ones."""

DIRECT = "198.51.100.130"
DIRECT_GATEWAY = "198.51.100.129"
DIRECT_DEVICE = "lan1"


class FidelityBed(Bed):
    """One Longhaul at one level. `direct` is a client on its own cable, which the redirect does not cover."""

    def __init__(self, folder: Path, level: str, saved: list[Page], ours: list[SiteFile]) -> None:
        authority = Authority(folder)
        site = Site(dns=[f"{RESOLVER}:53"], https_port=443, ca=authority.files.as_dict())
        # Saved pages name more hosts than the range has addresses. Several hosts share one, as on shared hosting.
        addresses = itertools.cycle(str(one) for one in SITES.hosts() if str(one) not in (RESOLVER, OUR_SITES))
        for page in saved:
            page.add_to(site, addresses)
        our_names = [host for one in ours for host in one.hosts()]
        site.records = {name: [OUR_SITES] for name in our_names}
        self._our_certificate = authority.issue(*our_names) if our_names else None
        pages = [page.url for page in saved] + [one.url for one in ours]
        terminated = [urlsplit(url).hostname or "" for url in pages if url.startswith("https:")]
        own = authority.issue(PROXY_NAME).as_dict()
        terminate = [{"names": [PROXY_NAME], **own}]
        if terminated:
            theirs = authority.issue("terminated.test", *terminated).as_dict()
            terminate.append({"names": terminated, **theirs})
        super().__init__(
            folder, site, [*site.hosts, *our_names], authority,
            rewrite={"level": level, "target": "https"}, tls={"terminate": terminate},
        )  # fmt: skip
        self.direct = Namespace("direct", resolv_conf=self.topology.clients.resolv_conf)

    def __enter__(self) -> Self:
        super().__enter__()
        with ExitStack() as stack:
            stack.callback(self._running.close)
            stack.enter_context(self.direct)
            gateway = self.topology.gateway
            veth(self.direct, DIRECT_DEVICE, gateway, DIRECT_DEVICE)
            self.direct.ip("address", "add", f"{DIRECT}/30", "dev", DIRECT_DEVICE)
            gateway.ip("address", "add", f"{DIRECT_GATEWAY}/30", "dev", DIRECT_DEVICE)
            self.direct.ip("route", "add", "default", "via", DIRECT_GATEWAY, "dev", DIRECT_DEVICE)
            if self._our_certificate:
                command = [
                    sys.executable, HERE / "site_server.py", "--sites", BREAKAGES, "--address", OUR_SITES,
                    "--cert", self._our_certificate.cert, "--key", self._our_certificate.key,
                ]  # fmt: skip
                server = stack.enter_context(
                    Child(self.topology.internet.inside(command), self.folder / "site_server.log")
                )
                server.wait_for_output("ready")
            self._running = stack.pop_all()
        return self


OWN = (PROXY_NAME, PROXY)
"""Every authority that is the proxy."""
