"""The networks of `make bench ONLY=operator`: machines with systemd on both sides of an emulated satellite link, an
operator's own computer, clients and origins.

    clients ── lan0 ship ── geo ── ground ── internet: origins and their resolver
                 └──── cables ────────┴──── desk, the operator's computer

One box stands in the place of the ground, and its clients at the ship's end of the link.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.host.artifacts import REPOSITORY, dist, need_commands
from harness.lab.line import NEAR, NEAR_DEVICE, Line
from harness.machines.machine import Machine, reachable
from harness.machines.trees import DEBIAN, Kind
from harness.net.authority import Authority
from harness.net.namespaces import Namespace, veth
from harness.net.topology import PROXY, RESOLVER, Topology, site_addresses
from harness.origins.program import Origins, Site

LAN = "lan0"
GROUND = "198.51.100.40"
"""The ground's address in the quick start."""
SHIP = NEAR
DESK, DESK_GATEWAY = "198.51.100.50", "198.51.100.49"
DESK_AT_SHIP, SHIP_AT_DESK = "192.0.2.210", "192.0.2.209"
"""A cable to the ship, as in a port. Each login over the link takes twelve of its round trips, which is nobody's
machine time."""
WWW, IMG, SECURE_NAME = "www.example.org", "img.example.org", "pep.example.net"
DOH = "dns.google"
"""A public resolver over https, which is an origin like the others here."""
PAGE = f'<!doctype html><title>A page</title><img src="http://{IMG}/picture.png" alt="">\n'
OTHERS = 4000
"""The further names that `operator_clients.py` looks up."""
LARGE_BYTES = 120_000
"""An object of many packets."""


@dataclass
class Bed:
    """A pair, or one box, of machines that have been switched on. Nothing is installed."""

    folder: Path
    topology: Topology
    machines: dict[str, Machine]
    """By the names of the quick starts: desk, ground and ship, or gateway."""
    origins: Origins
    authority: Authority

    def machine(self, name: str) -> Machine:
        """One of them."""
        return self.machines[name]

    @property
    def clients(self) -> Namespace:
        """The network of the clients."""
        return self.topology.clients


@contextmanager
def pair_bed(folder: Path, kind: Kind, deb: Path, profile: str = "geo") -> Iterator[Bed]:
    """Switches on a ship, a ground and a desk, in a network that routes."""
    with ExitStack() as stack:
        line = stack.enter_context(Line(folder, profile, seed=1))
        line.gateway.ip("address", "add", f"{GROUND}/32", "dev", "lo")
        rename(line.near, NEAR_DEVICE, LAN)
        desk = stack.enter_context(Namespace("desk"))
        cable(desk, "eth0", f"{DESK}/30", line.gateway, "desk0", f"{DESK_GATEWAY}/30")
        desk.ip("route", "add", "default", "via", DESK_GATEWAY)
        cable(desk, "eth1", f"{DESK_AT_SHIP}/30", line.near, "desk1", f"{SHIP_AT_DESK}/30")
        places = {"desk": (desk, DEBIAN), "ground": (line.gateway, kind), "ship": (line.near, kind)}
        machines = {
            name: stack.enter_context(Machine(name, its, place, folder)) for name, (place, its) in places.items()
        }
        reachable(machines["desk"], [(machines["ground"], GROUND), (machines["ship"], SHIP_AT_DESK)])
        put(deb, machines["desk"])
        for name in ("ground", "ship"):
            as_found(machines[name])
        authority = Authority(folder)
        there = stack.enter_context(origins(folder, line, authority, {}))
        yield Bed(folder, line, machines, there, authority)


@contextmanager
def one_box_bed(folder: Path, kind: Kind, deb: Path, profile: str = "geo") -> Iterator[Bed]:
    """Switches on a gateway on the wired side of the link, with the certificate of its name."""
    with ExitStack() as stack:
        topology = stack.enter_context(Topology(folder, link_profile=profile))
        gateway = stack.enter_context(Machine("gateway", kind, topology.gateway, folder))
        authority = Authority(folder)
        certificate = authority.issue(SECURE_NAME)
        as_found(gateway)
        put(deb, gateway)
        for source in (certificate.cert, certificate.key):
            gateway.write(f"{home(gateway)}/pep{source.suffix}", source.read_bytes(), 0o600)
        there = stack.enter_context(origins(folder, topology, authority, {SECURE_NAME: [PROXY]}))
        yield Bed(folder, topology, {"gateway": gateway}, there, authority)


@contextmanager
def origins(folder: Path, topology: Topology, authority: Authority, records: dict[str, list[str]]) -> Iterator[Origins]:
    """A page with a picture, a large object beside it, and a resolver over https."""
    content = folder / "site"
    content.mkdir()
    (content / "index.html").write_text(PAGE)
    (content / "large.bin").write_bytes(os.urandom(LARGE_BYTES))
    www, img, doh = (address for _, address in zip(range(3), site_addresses(), strict=False))
    records = records | {f"n{number}.example.org": [img] for number in range(OTHERS)}
    site = Site(dns=[f"{RESOLVER}:53"], https_port=443, ca=authority.files.as_dict(), records=records)
    site.hosts = {
        WWW: {"address": www, "root": str(content)},
        IMG: {"address": img, "generate": True},
        DOH: {"address": doh, "root": str(content)},
    }
    with Origins(site.write(folder / "site.json"), folder, topology.internet) as running:
        yield running


def home(machine: Machine) -> str:
    """The folder in which the operator's shell starts."""
    return "/root" if machine.kind.user == "root" else f"/home/{machine.kind.user}"


def as_found(machine: Machine) -> None:
    """Sets up a router as it is before Longhaul. With ufw, its defaults drop what comes in and what is
    forwarded, so the exceptions are ssh and the clients."""
    if "ufw" in machine.kind.packages:
        routed = "".join(f" && ufw route allow in on {device}" for device in (LAN, "desk0"))
        machine.run(f"ufw allow OpenSSH{routed} && ufw --force enable")


def cable(left: Namespace, device: str, address: str, right: Namespace, its_device: str, its_address: str) -> None:
    """Joins two namespaces, and gives both ends their addresses with prefixes."""
    veth(left, device, right, its_device)
    left.ip("address", "add", address, "dev", device)
    right.ip("address", "add", its_address, "dev", its_device)


def put(deb: Path, machine: Machine) -> None:
    """Puts the package into the operator's home folder of a machine."""
    machine.write(f"{home(machine)}/{deb.name}", deb.read_bytes())


def rename(namespace: Namespace, device: str, name: str) -> None:
    """Gives a device another name. Its addresses stay, and the kernel makes its routes again."""
    for change in (("down",), ("name", name), ("up",)):
        namespace.ip("link", "set", device if change != ("up",) else name, *change)


def package() -> Path:
    """The deb of this machine's architecture, made again if a program or a file of the package is newer."""
    need_commands("go", "strip", "dpkg-deb")
    out = REPOSITORY / "target" / "package"
    parts = itertools.chain(dist().iterdir(), (REPOSITORY / "deploy").rglob("*"))
    newest = max(path.stat().st_mtime for path in parts)
    for deb in out.glob("longhaul_*_amd64.deb"):
        if deb.stat().st_mtime > newest:
            return deb
    shutil.rmtree(out / "work", ignore_errors=True)
    program = REPOSITORY / "deploy" / "package"
    line = [program, "--dist", dist(), "--arches", "amd64", "--formats", "deb"]
    subprocess.run(["python3", *map(str, line)], check=True, stdout=subprocess.DEVNULL, timeout=1800)
    [deb] = out.glob("longhaul_*_amd64.deb")
    return deb
