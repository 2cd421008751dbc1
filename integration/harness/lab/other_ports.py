"""A bed for TCP ports beside the web: a pair on a link, servers that speak first, and real clients of ssh,
mail, chat and a VPN.

The remote takes the ports of `listen.tcp: auto`. The ground lists most of them. Servers have further ports, so that
each way stands beside the others.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.boxes.pair import PIPE_PORT
from harness.host.artifacts import REPOSITORY, Missing, built
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.net.namespaces import Namespace
from harness.net.topology import CLIENT_DEVICE, LINK_LOCAL_ADDRESS, PRIVATE_ADDRESS, SITES_IPV6

from .line import FAR, NEAR_DEVICE, Line
from .mail_ends import IMAP, SUBMISSION
from .tunnels import ENDS, SPEAKS_FIRST, TunnelBed, tunnel_bed
from .vpn import Vpn, vpn

LISTED = (22, 110, IMAP, 465, SUBMISSION, 993, 5222, 5223, 5228)
"""The ports of `auto` that the ground lists."""
NOT_AT_GROUND = 995
"""The port of `auto` that the ground does not list."""
UNTOUCHED = 8022
"""A port that no end lists."""
FREE = 5222
"""The listed port of the server of bytes."""
MAIL, SSH = "203.0.113.202", "203.0.113.203"
FORBIDDEN = (PRIVATE_ADDRESS, LINK_LOCAL_ADDRESS, "127.0.0.1", FAR, "[::1]", "[fd00::1]", "198.51.100.1")
"""Addresses that no client may reach over the pipe: private ones, and those of the ground. Something listens at the
first two."""
SPEAKS_FIRST_IPV6, SERVER_IPV6 = "2001:db8:3::201", "2001:db8:3::200"
CHAT = SSH
"""The server of XMPP, and of the VPN. Port 5222 of the mail server stays closed."""
MAIL_ENDS, CHAT_ENDS, CONNECTS = (
    Path(__file__).with_name(name) for name in ("mail_ends.py", "chat_ends.py", "connects.py")
)
CLIENTS_VENV = REPOSITORY / "target" / "venv-clients" / "bin" / "python"
"""The interpreter with slixmpp."""
SSH_OPTIONS = (
    "-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
    "-o", "BatchMode=yes",
)  # fmt: skip
PERIOD = 251
"""Byte i of the ssh server's files is i modulo this."""


def file_of(size: int) -> bytes:
    """Returns the ssh server's file of a size."""
    whole = bytes(range(PERIOD))
    return (whole * (size // PERIOD + 1))[:size]


@dataclass
class OtherPortsBed:
    """Everything runs. Without Longhaul, `tunnels` has no boxes."""

    tunnels: TunnelBed
    folder: Path

    @property
    def clients(self) -> Namespace:
        """The namespace of the clients."""
        return self.tunnels.line.clients

    def banner_s(self, port: int, address: str = SPEAKS_FIRST) -> float:
        """Returns the seconds until a server that speaks first is heard. Raises if it never is."""
        heard = self.tunnels.ask(do="banner", address=address, port=port)
        assert heard["right"], heard
        return heard["seconds"]

    def mail(self, do: str) -> subprocess.Popen[str]:
        """Starts a session of `imap` or `smtp`. Its result comes from `finish` of the tunnels."""
        ask = json.dumps({"do": do, "address": MAIL})
        command = self.clients.inside([sys.executable, "-S", "-E", MAIL_ENDS, "ask", ask])
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def ssh(self, *command: str) -> subprocess.Popen[bytes]:
        """Starts the program `ssh`."""
        line = self.clients.inside(["ssh", *SSH_OPTIONS, f"user@{SSH}", *command])
        return subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def sftp(self, size: int) -> tuple[subprocess.Popen[bytes], Path]:
        """Starts the program `sftp` for a file of a size. Returns the place of the file, too."""
        to = self.folder / f"sftp-{size}"
        line = self.clients.inside(["sftp", "-q", *SSH_OPTIONS, f"user@{SSH}:/{size}", to])
        return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE), to

    def chat(self) -> subprocess.Popen[str]:
        """Starts a session of XMPP. Its result comes from `finish` of the tunnels."""
        if not CLIENTS_VENV.exists():
            raise Missing("slixmpp is not installed: make target/venv-clients/.ready")
        line = self.clients.inside([CLIENTS_VENV, CHAT_ENDS, "ask", json.dumps({"address": CHAT})])
        return subprocess.Popen(line, stdout=subprocess.PIPE, text=True)

    @contextmanager
    def vpn(self, *sizes: int) -> Iterator[Vpn]:
        """Opens a VPN over TCP, with files of these sizes at its far end."""
        home = self.folder / "vpn"
        home.mkdir(exist_ok=True)
        with vpn(home, self.tunnels.line.internet, self.clients, CHAT, list(sizes)) as tunnel:
            yield tunnel

    def led(self) -> int:
        """Returns the connections that the packet rules have led to the remote's listener of other ports."""
        shown = self.tunnels.line.near.run("nft", "-j", "list", "counter", "inet", "longhaul", "to_tcp")
        [counter] = [one["counter"] for one in json.loads(shown.stdout)["nftables"] if "counter" in one]
        return counter["packets"]

    def logged(self) -> list[dict[str, Any]]:
        """Returns the lines of the remote's access log for other ports, once each connection so far has one."""

        def lines() -> list[dict[str, Any]] | None:
            found = [line for line in self.tunnels.boxes["remote"].requests() if "attempts" in line]
            return found if len(found) >= self.led() else None

        return wait_for("the lines of all connections", lines, interval_s=0.1)

    def connects(self, to: Sequence[str]) -> dict[str, int]:
        """Returns the status that the ground gives its remote for a CONNECT to each HOST:PORT. 0: no response."""
        pair = self.tunnels.pair
        assert pair
        ask = {"address": FAR, "port": PIPE_PORT, "to": list(to), **pair.identity}
        shown = self.tunnels.line.near.run(sys.executable, CONNECTS, json.dumps(ask), timeout_s=60)
        return json.loads(shown.stdout)

    @contextmanager
    def refusing_ground(self) -> Iterator[None]:
        """Makes the ground's machine refuse the remote, as if the ground had died."""
        gateway, table = self.tunnels.line.gateway, "inet refusing"
        chain = "type filter hook input priority 0;"
        gateway.run("nft", f"add table {table}; add chain {table} in {{ {chain} }}; "
                    f"add rule {table} in tcp dport {PIPE_PORT} reject with tcp reset")  # fmt: skip
        try:
            yield
        finally:
            gateway.run("nft", f"delete table {table}")


def same(data: bytes, size: int) -> bool:
    """Reports whether a download is the ssh server's file of a size."""
    return len(data) == size and hashlib.sha256(data).digest() == hashlib.sha256(file_of(size)).digest()


def _add_ipv6(line: Line) -> None:
    """Gives clients and servers IPv6. The link itself has none, because the pipe crosses it."""
    for namespace in (line.clients, line.near, line.gateway, line.internet):
        namespace.sysctl("net.ipv6.conf.all.disable_ipv6", 0)
    for namespace, address, device in (
        (line.clients, "2001:db8:1::2/64", CLIENT_DEVICE),
        (line.near, "2001:db8:1::1/64", NEAR_DEVICE),
        (line.gateway, "2001:db8:2::1/64", "wan0"),
        (line.internet, "2001:db8:2::2/64", "wan0"),
    ):
        namespace.ip("address", "add", address, "dev", device)
    line.clients.ip("-6", "route", "add", "default", "via", "2001:db8:1::1")
    line.internet.ip("-6", "route", "add", "default", "via", "2001:db8:2::1")
    line.internet.sysctl("net.ipv6.ip_nonlocal_bind", 1)
    line.internet.ip("-6", "route", "add", "local", str(SITES_IPV6), "dev", "lo")
    line.gateway.ip("-6", "route", "add", str(SITES_IPV6), "via", "2001:db8:2::2")


@contextmanager
def other_ports_bed(folder: Path, way: str, profile: str = "geo", **sections: Any) -> Iterator[OtherPortsBed]:
    """Sets up the bed, `direct` or with a `pair`. `sections` are those of `tunnel_bed`."""
    served = sorted({*LISTED, NOT_AT_GROUND, UNTOUCHED})
    ends: dict[str, Any] = {"tcp": "auto", "ground_ports": LISTED} if way == "pair" else {}
    with ExitStack() as stack:
        bed = stack.enter_context(
            tunnel_bed(folder, way, profile, served=served, prepare=_add_ipv6, **ends, **sections)
        )
        key = Authority(folder).issue("mail.example.org")
        python = [sys.executable, "-S", "-E"]
        programs = {
            "mail": [*python, MAIL_ENDS, "serve", MAIL, key.cert, key.key],
            "ssh": [built("sshd"), f"{SSH}:22"],
            "chat": [*python, CHAT_ENDS, "serve", CHAT, key.cert, key.key],
            "ipv6": [
                *python, ENDS, "serve", SERVER_IPV6, SPEAKS_FIRST_IPV6, key.cert, key.key, bed.log,
                *map(str, served),
            ],
            "private": [
                *python, ENDS, "serve", LINK_LOCAL_ADDRESS, PRIVATE_ADDRESS, key.cert, key.key, bed.log,
                *map(str, served),
            ],
        }  # fmt: skip
        for name, command in programs.items():
            child = Child(bed.line.internet.inside(command), folder / f"{name}-server.log")
            stack.callback(child.stop)
            child.wait_for_output("ready")
        yield OtherPortsBed(bed, folder)
