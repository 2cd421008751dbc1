"""Longhaul as a pair, one box at each end of the link. Takes part where `longhaul check` accepts its roles."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.authority import Authority
from harness.pep import Pep, command, write_config
from harness.topology import RESOLVER

from ..line import FAR, NEAR_DEVICE, NEAR_HOME
from ..links import Link, link
from .base import Contender, Ground, intercept, rules, sysctls
from .longhaul import route_options

PIPE = 8443
REMOTE_NAME = "remote.example"
"""What the remote's certificate says."""


class Pair(Contender):
    """Role `remote` on the near box, role `ground` on the gateway, both with their defaults."""

    name = "longhaul-pair"
    title = "Longhaul, pair"
    about = (
        "Longhaul with a box at each end of the link, both with their defaults: names are steered to the near box, "
        "requests share one pipe, TLS takes connections that are open already."
    )

    def missing(self) -> str | None:
        """Versions without the roles refuse them."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            authority = Authority(folder)
            for role, config in (
                ("remote", remote_config(authority, link("geo"))),
                ("ground", ground_config(authority, link("geo"), folder, 9901)),
            ):
                check = command("check", write_config(folder, config, ["example.org"]))
                if check.returncode != 0:
                    lines = (check.stderr + check.stdout).splitlines()
                    return f"`longhaul check` refuses role {role}: {lines[0] if lines else check.returncode}"
        return None

    @contextmanager
    def started(self, ground: Ground) -> Iterator[None]:
        """Both boxes run; the ground first, as the remote dials it."""
        near, far = ground.folder_of("pair-remote"), ground.folder_of("pair-ground")
        ground_file = write_config(far, ground_config(ground.authority, ground.link, far, ground.take_port()))
        remote_file = write_config(near, remote_config(ground.authority, ground.link), ground.hosts)
        trusted = ground.authority.files.cert
        with (
            Pep(ground_file, far, ground.line.gateway, trusted=trusted),
            Pep(remote_file, near, ground.line.near, trusted=trusted),
        ):
            yield

    @contextmanager
    def engaged(self, ground: Ground) -> Iterator[None]:
        """The near box takes web and DNS traffic; both ends of the link have the windows that were derived."""
        options = route_options(ground.folder_of("pair-remote") / "longhaul.yaml")
        lines = [f"tcp dport {port} redirect to :{port}" for port in (80, 443, 53)]
        with (
            rules(ground.line.near, intercept(NEAR_DEVICE, *lines, "udp dport 53 redirect to :53")),
            sysctls(ground.line.near, tcp_slow_start_after_idle=0),
            sysctls(ground.line.gateway, tcp_slow_start_after_idle=0),
        ):
            ground.line.set_near_route(*options)
            try:
                yield
            finally:
                ground.line.set_near_route()


def remote_config(authority: Authority, on: Link) -> dict[str, Any]:
    """longhaul.yaml of the near box."""
    return {
        "role": "remote",
        "link": on.setting,
        "proxy": {"addresses": [NEAR_HOME]},
        "upstream": {"resolvers": [RESOLVER]},
        "dns": {"domains": ["steered.txt"]},
        "split": {"peer": f"{FAR}:{PIPE}", **_identity(authority, REMOTE_NAME)},
    }


def ground_config(authority: Authority, on: Link, folder: Path, admin_port: int) -> dict[str, Any]:
    """longhaul.yaml of the box on the wired side."""
    return {
        "role": "ground",
        "link": on.setting,
        "listen": {"admin": f"127.0.0.1:{admin_port}"},
        "upstream": {"resolvers": [RESOLVER]},
        "cache": {"dir": str(folder / "cache"), "size": "256mib"},
        "split": {"listen": f"0.0.0.0:{PIPE}", "peer": [REMOTE_NAME], **_identity(authority, FAR)},
    }


def _identity(authority: Authority, name: str) -> dict[str, str]:
    return {**authority.issue(name).as_dict(), "ca": str(authority.files.cert)}


def pair_contenders() -> tuple[Contender, ...]:
    """The pair."""
    return (Pair(),)
