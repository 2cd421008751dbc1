"""The rules that send clients to a contender: no connection reaches the one before."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.clients.commands import Curl
from harness.host.artifacts import need_commands, need_root
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.lab.contenders.base import intercept, rules, wait_for_port
from harness.net.namespaces import Namespace, veth

CLIENT, GATEWAY, ORIGIN = "192.0.2.2", "192.0.2.1", "203.0.113.1"
FIRST, SECOND = 8001, 8002
SOURCE = 40000

END = """
one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
print("connected", flush=True)
signal.pause()
"""
"""The end of a connection is one packet, which nobody sends again."""
CONNECT = f"""
import signal, socket, struct
one = socket.create_connection(("{ORIGIN}", 80), source_address=("{CLIENT}", {SOURCE}))
{END}"""
ACCEPT = f"""
import signal, socket, struct
one, _ = socket.create_server(("{GATEWAY}", {FIRST})).accept()
{END}"""
MUTE = f"""
table ip mute {{
    chain in {{ type filter hook prerouting priority raw; tcp sport {SOURCE} drop; }}
    chain out {{ type filter hook output priority raw; tcp dport {SOURCE} drop; }}
}}
"""
"""Drops the packets of the connection before the packet filter knows of them."""


def test_a_connection_that_vanished_leads_no_other_one_to_its_contender(tmp_path: Path) -> None:
    need_root()
    need_commands("ip", "nft", "nsenter", "curl")
    with Namespace("clients") as clients, Namespace("gateway") as gateway:
        veth(clients, "wan0", gateway, "lan0")
        clients.ip("address", "add", f"{CLIENT}/24", "dev", "wan0")
        gateway.ip("address", "add", f"{GATEWAY}/24", "dev", "lan0")
        clients.ip("route", "add", "default", "via", GATEWAY)
        with rules(gateway, _to(FIRST)):
            with Child(gateway.inside([sys.executable, "-c", ACCEPT]), tmp_path / "accept.log") as server:
                wait_for_port(gateway, FIRST, server)
                with Child(clients.inside([sys.executable, "-c", CONNECT]), tmp_path / "connect.log") as client:
                    for end in (client, server):
                        wait_for("the connection", lambda end=end: "connected" in end.output())
                    gateway.run("nft", MUTE)
            gateway.run("nft", "delete", "table", "ip", "mute")
        with _server(gateway, tmp_path, FIRST), _server(gateway, tmp_path, SECOND), rules(gateway, _to(SECOND)):
            curl = Curl(tmp_path, clients, "--local-port", str(SOURCE))
            answer = curl.get(f"http://{ORIGIN}/port", timeout_s=20)
            assert (answer.status, answer.body) == (200, str(SECOND).encode())


def _to(port: int) -> str:
    return intercept("lan0", f"tcp dport 80 dnat to {GATEWAY}:{port}")


@contextmanager
def _server(gateway: Namespace, folder: Path, port: int) -> Iterator[None]:
    (folder / str(port)).mkdir()
    (folder / str(port) / "port").write_text(str(port))
    command = [sys.executable, "-m", "http.server", "--directory", folder / str(port), str(port)]
    with Child(gateway.inside(command), folder / f"{port}.log") as server:
        wait_for_port(gateway, port, server)
        yield
