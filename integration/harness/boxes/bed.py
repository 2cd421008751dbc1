"""Topology, origins, Longhaul and the redirect together: a network for clients behind the gateway, with or without
Longhaul."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from harness.clients.commands import Answer, Curl, DnsAnswer, dig
from harness.net.authority import Authority
from harness.net.redirect import redirected
from harness.net.topology import PROXY, RESOLVER, Topology
from harness.origins.program import Origins, Site

from .pep import PROXY_NAME, Pep, derived, gateway_config, write_config

OWN = (PROXY_NAME, PROXY)
"""Every authority of the proxy."""


class Bed:
    """A network whose gateway runs Longhaul from entry to exit. It redirects clients, except in `without_longhaul`."""

    def __init__(
        self,
        folder: Path,
        site: Site,
        steered: Sequence[str],
        authority: Authority,
        *,
        link_profile: str | None = None,
        wan_profile: str | None = None,
        secure_name: str = PROXY_NAME,
        ipv6: bool = False,
        **config: Any,
    ) -> None:
        """`steered` are the names of the allowlist. `config` replaces sections of the configuration. `secure_name` is
        the proxy's https name, or its address, which saves clients a lookup. `wan_profile` is that of the link
        to the Internet. `ipv6` adds the second family."""
        self.folder = folder
        self.site = site
        self.authority = authority
        site.records.setdefault(PROXY_NAME, [PROXY])
        self.certificate = authority.issue(secure_name).as_dict()
        self.topology = Topology(folder, link_profile=link_profile, wan_profile=wan_profile, ipv6=ipv6)
        self.origins = Origins(site.write(folder / "site.json"), folder, self.topology.internet)
        self.config = write_config(
            folder, gateway_config(folder, self.certificate, secure_name=secure_name, **config), steered
        )
        self.pep = Pep(self.config, folder, self.topology.gateway, trusted=authority.files.cert)
        self.initial_window = int(derived(self.config)["initial_window"]) if link_profile else None
        self._running = ExitStack()
        self._steering = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.topology)
            stack.enter_context(self.origins)
            stack.enter_context(self.pep)
            stack.callback(self._unload)
            self._load()
            self._running = stack.pop_all()
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._running.close()

    def _load(self) -> None:
        with ExitStack() as stack:
            stack.enter_context(redirected(self.topology.gateway, self.folder))
            self.topology.widen_initial_window(self.initial_window)
            stack.callback(self.topology.widen_initial_window, None)
            self._steering = stack.pop_all()

    def _unload(self) -> None:
        self._steering.close()

    @contextmanager
    def without_longhaul(self) -> Iterator[None]:
        """Lets clients reach the origins directly, through a gateway that only routes."""
        self._unload()
        try:
            yield
        finally:
            self._load()

    @property
    def curl(self) -> Curl:
        """A client's curl, which trusts the authority of the bed."""
        return Curl(self.folder, self.topology.clients, "--cacert", str(self.authority.files.cert))

    def original(self, url: str, *options: str) -> Answer:
        """Fetches the origin's own response, without the proxy."""
        split = urlsplit(url)
        port = split.port or (443 if split.scheme == "https" else 80)
        address = self.site.hosts[split.hostname or ""]["address"]
        curl = Curl(self.folder, self.topology.internet, "--cacert", str(self.authority.files.cert))
        return curl.get(url, "--resolve", f"{split.hostname}:{port}:{address}", *options)

    def dig(self, name: str, kind: str, *options: str) -> DnsAnswer:
        """Sends a query of a client to its resolver, which is on the Internet. The redirect brings it to Longhaul."""
        return dig(name, kind, RESOLVER, *options, namespace=self.topology.clients)
