"""How each fault is staged at a running pair, and how a person carries out the cures that are no commands.

A stage returns as soon as the fault is there, because the time counts from then. `undo` removes the fault whatever the
product says; it runs after the measurement.
"""

from __future__ import annotations

import re
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.operator_bed import GROUND, LAN, SHIP, Bed
from bench.operator_watch import Clients
from harness.machines.machine import Machine
from harness.net.topology import CLIENT, RESOLVER

CONFIG = "/etc/longhaul/longhaul.yaml"
CLOCK = "/var/lib/test-clock"
DAY_S = 86_400
OUTAGE_S = 2
SMALL_PACKET_BYTES = 1280


class Ship:
    """The place where stages and cures act: the pair, its clients, and the steps that undo a stage."""

    def __init__(self, bed: Bed, clients: Clients) -> None:
        self.bed, self.clients = bed, clients
        self.ship, self.ground = bed.machine("ship"), bed.machine("ground")
        self.stack = ExitStack()

    def end(self, name: str) -> Machine:
        """One of the two machines."""
        return self.bed.machine(name)

    def later(self, machine: Machine, command: str) -> None:
        """Types a command when the fault is undone. It may fail, because the cure may have done it."""
        self.stack.callback(lambda: machine.run(command, check=False))

    def edit(self, machine: Machine, old: str, new: str) -> None:
        """Changes the configuration file, until the fault is undone."""
        before = machine.read(CONFIG).decode()
        assert old in before, f"{CONFIG} has no {old}: {before}"
        self.stack.callback(lambda: machine.write(CONFIG, before))
        machine.write(CONFIG, before.replace(old, new))

    def table(self, machine: Machine, chain: str, rules: str, family: str = "inet") -> None:
        """Loads a packet filter of somebody else."""
        self.later(machine, f"nft delete table {family} site")
        machine.run(f"nft -f - <<'END'\ntable {family} site {{ chain rules {{ {chain}; {rules}; }}; }}\nEND")


Stage = Callable[[Ship], None]
Mend = Callable[[Ship, str], None]
"""Carries out the cure, which is the text that was found in the product's words."""


DROP_INPUT = "type filter hook input priority 0; policy accept"
TYPE_INPUT = "type filter hook input priority 0; policy drop"
OUTPUT = "type filter hook output priority 0; policy accept"
BEFORE_ROUTING = "type filter hook prerouting priority -350; policy accept"


def undone(ship: Ship, found: str) -> None:  # noqa: ARG001 - the words name something outside of the box
    """The cure is outside of the box, and the words say so: removes the fault there."""
    ship.stack.close()


def restored(ship: Ship, found: str) -> None:
    """The words name what to edit or to copy: puts it as it was."""
    undone(ship, found)


# ------------------------------------------------------------------------------------------------ link and ground


def silent_link(ship: Ship) -> None:
    link = ship.bed.topology.link
    assert link
    over = threading.Event()

    def keep_silent() -> None:
        # The emulator cannot end an outage early, so that many short ones make a long one.
        while not over.is_set():
            link.outage(f"{OUTAGE_S}s drop")
            over.wait(OUTAGE_S / 2)

    thread = threading.Thread(target=keep_silent, daemon=True)
    thread.start()
    ship.stack.callback(thread.join)
    ship.stack.callback(over.set)


def ground_stopped(ship: Ship) -> None:
    ship.later(ship.ground, "systemctl start longhaul")
    ship.ground.run("systemctl stop longhaul")


def start_ground(ship: Ship, found: str) -> None:
    """Starts it. The words say that it is for the ground."""
    ship.ground.run(found if found.startswith("systemctl") else "systemctl start longhaul", check=False)


def pipe_port_dropped(ship: Ship) -> None:
    ship.table(ship.ground, DROP_INPUT, "tcp dport 8443 drop")


def small_packets(ship: Ship) -> None:
    """A hop in each direction drops large packets and says nothing. A drop at the sender would tell TCP."""
    for machine, device in ((ship.ground, LAN), (ship.ship, "sky0")):
        ship.table(machine, BEFORE_ROUTING, f"iifname {device} meta length > {SMALL_PACKET_BYTES} drop")


def set_mtu(ship: Ship, found: str) -> None:
    """Writes the size that the words name at both ends."""
    value = re.findall(r"\d{3,4}", found)[-1]
    for machine in (ship.ship, ship.ground):
        ship.edit(machine, "up: 5mbit", f"up: 5mbit, mtu: {value}")
    time.sleep(1)
    # The edit stays until the hop is gone. Those edits are undone last.


def captive_portal(ship: Ship) -> None:
    """A portal on the way ends TLS connections with its own certificate."""
    folder = ship.bed.folder / "portal"
    folder.mkdir(exist_ok=True)
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "9",
            "-addext", "basicConstraints=critical,CA:FALSE", "-addext", "subjectAltName=DNS:login.portal.example",
            "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-subj", "/CN=login.portal.example",
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    ship.ground.write("/root/portal.pem", (folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    server = "openssl s_server -quiet -accept 9443 -cert /root/portal.pem -key /root/portal.pem"
    ship.ground.run(f"systemd-run -q --unit=portal sh -c 'sleep 3600 | {server}'")
    ship.later(ship.ground, "systemctl stop portal")
    ship.table(
        ship.ground, "type nat hook prerouting priority -110", f"iifname {LAN} tcp dport 8443 redirect to :9443", "ip"
    )
    ship.bed.topology.gateway.forget_connections()
    ship.ship.run("ss -K dst 198.51.100.40 dport = 8443", check=False)


def two_ways_out(ship: Ship) -> None:
    """A second uplink has the default route, and marked packets take the first one: the classic trap of rp_filter."""
    machine = ship.ship
    ship.later(
        machine,
        "ip rule del fwmark 7 lookup 77; ip route flush table 77; ip link del wan1;"
        " sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.sky0.rp_filter=0",
    )
    way = machine.run("ip -4 route show default").stdout.split(" proto")[0].strip()
    ship.table(machine, "type route hook output priority -150; policy accept", f"ip daddr {GROUND} meta mark set 7")
    machine.run(
        f"ip link add wan1 type veth peer name modem1 && ip link set modem1 up && ip link set wan1 up"
        f" && ip address add 192.0.2.194/30 dev wan1 && ip route add {way} table 77 && ip rule add fwmark 7 lookup 77"
        f" && ip route replace default via 192.0.2.193 dev wan1 src {SHIP}"
        " && sysctl -qw net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.sky0.rp_filter=1"
    )
    ship.later(machine, f"ip route replace {way}")


# -------------------------------------------------------------------------------------------------- packet filters


def names_dropped(ship: Ship) -> None:
    ship.table(ship.ship, DROP_INPUT, f"iifname {LAN} udp dport 53 drop")


def input_dropped(ship: Ship) -> None:
    ship.table(ship.ship, TYPE_INPUT, "ct state established,related accept; iif lo accept; tcp dport 22 accept")


def other_redirect(ship: Ship) -> None:
    ship.table(
        ship.ship, "type nat hook prerouting priority -101", f"iifname {LAN} tcp dport 80 redirect to :8081", "ip"
    )


def flushed(ship: Ship) -> None:
    ship.later(ship.ship, f"systemctl restart longhaul-host@{LAN}")
    ship.ship.run("nft flush ruleset")


def not_forwarding(ship: Ship) -> None:
    ship.later(ship.ship, "sysctl -qw net.ipv4.ip_forward=1")
    ship.ship.run("sysctl -qw net.ipv4.ip_forward=0")


# ----------------------------------------------------------------------------------------------------------- names


def other_resolver(ship: Ship) -> None:
    ship.edit(ship.ground, RESOLVER, "203.0.113.99")


def resolver_blocked(ship: Ship) -> None:
    ship.table(ship.ground, OUTPUT, f"ip daddr {RESOLVER} udp dport 53 drop")


def with_list(ship: Ship) -> None:
    ship.ship.write("/etc/longhaul/domains.txt", "www.example.org\n")
    ship.later(ship.ship, "rm -f /etc/longhaul/domains.txt")
    ship.edit(ship.ship, "proxy:", "dns: { domains: [domains.txt] }\nproxy:")
    time.sleep(8)


def two_words_on_a_line(ship: Ship) -> None:
    ship.ship.write("/etc/longhaul/domains.txt", "example.org www.example.com\nwww.example.org\n")


def mend_list(ship: Ship, found: str) -> None:  # noqa: ARG001 - the line to mend
    """Writes one name a line."""
    ship.ship.write("/etc/longhaul/domains.txt", "example.org\nwww.example.org\n")


def loop(ship: Ship) -> None:
    """The ground's resolver is a forwarder behind the ship, whose queries the ship takes to the ground."""
    forwarder = Path(__file__).with_name("operator_forwarder.py")
    child = subprocess.Popen(
        ship.bed.clients.inside(["python3", forwarder, CLIENT, RESOLVER]),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    ship.stack.callback(child.wait)
    ship.stack.callback(child.kill)
    ship.edit(ship.ground, RESOLVER, CLIENT)


def encrypted_names(ship: Ship) -> None:
    ship.stack.enter_context(Clients(ship.bed, "doh"))


def ipv6_client(ship: Ship) -> None:
    line = ship.bed.topology
    near, clients = ship.ship, line.clients
    ship.later(near, f"sysctl -qw net.ipv6.conf.all.forwarding=0; ip -6 address flush dev {LAN} scope global")
    ship.stack.callback(lambda: clients.sysctl("net.ipv6.conf.all.disable_ipv6", 1))
    clients.sysctl("net.ipv6.conf.all.disable_ipv6", 0)
    near.run(
        f"sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.{LAN}.disable_ipv6=0 net.ipv6.conf.all.forwarding=1"
        f" && ip address add 2001:db8:1::1/64 dev {LAN} nodad"
    )
    clients.ip("address", "add", "2001:db8:1::2/64", "dev", "lan0", "nodad")
    clients.ip("-6", "route", "add", "default", "via", "2001:db8:1::1")
    asking = ["bash", "-c", "while :; do curl -6 -sm 5 -o /dev/null 'http://[2001:db8:3::1]/'; sleep 1; done"]
    child = subprocess.Popen(clients.inside(asking), stdin=subprocess.DEVNULL, start_new_session=True)
    ship.stack.callback(child.wait)
    ship.stack.callback(child.kill)


def without_ipv6(ship: Ship) -> None:
    ship.edit(ship.ship, "proxy:", 'listen: { http: "0.0.0.0:80", tls: "0.0.0.0:443", dns: "0.0.0.0:53" }\nproxy:')
    time.sleep(8)


# -------------------------------------------------------------------------------------- certificates, clock, disk


def other_certificate(ship: Ship) -> None:
    """Files of another pair, copied over those of the running ship."""
    where = "/root/other"
    ship.bed.machine("desk").run(
        f"rm -rf {where} && longhaul pair init ship {GROUND}:8443 --rtt 600ms --down 20mbit --up 5mbit"
        f" --clients 192.0.2.1 --resolver {RESOLVER} --dir {where}"
    )
    ship.stack.callback(lambda: copy_certificate(ship, "pair"))
    copy_certificate(ship, where)


def copy_certificate(ship: Ship, folder: str) -> None:
    """Copies certificate and key of the ship as the quick start does."""
    pack = f"tar -C {folder}/ship --owner=root --group=longhaul -cf - ship.pem ship.key"
    ship.bed.machine("desk").run(f"{pack} | ssh root@ship tar -xpf - -C /etc/longhaul")


def jump(ahead_s: int) -> Stage:
    """A stage that sets the ship's clock ahead, or behind."""

    def stage(ship: Ship) -> None:
        ship.stack.callback(lambda: set_clock(ship.ship, 0))
        set_clock(ship.ship, ahead_s)

    return stage


def set_clock(machine: Machine, ahead_s: int) -> None:
    """Sets the clock of all programs of a machine but CoreDNS, which asks the kernel."""
    octal = "".join(f"\\{byte:03o}" for byte in struct.pack("=q", ahead_s))
    machine.run(f"printf '{octal}' | dd of={CLOCK} conv=notrunc status=none")


def mend_clock(ship: Ship, found: str) -> None:
    """Types the command, or sets the clock by hand where the words are no command."""
    if found.startswith(("timedatectl", "date", "chronyc")):
        ship.ship.run(found, check=False)
    else:
        set_clock(ship.ship, 0)


def port_taken(ship: Ship) -> None:
    machine = ship.ship
    ship.later(
        machine, "systemctl stop other-web; systemctl reset-failed longhaul; systemctl --no-block restart longhaul"
    )
    machine.run(
        "systemctl stop longhaul && systemd-run -q --unit=other-web systemd-socket-activate -l 0.0.0.0:443 /bin/cat"
    )
    machine.run(f"sleep 0.5; systemctl --no-block start longhaul longhaul-host@{LAN}")


def free_port(ship: Ship, found: str) -> None:  # noqa: ARG001 - the words name the program to stop
    """Stops the other program. The service tries again by itself."""
    ship.ship.run("systemctl stop other-web", check=False)


def fill(machine: Machine) -> None:
    """Takes all room of the disk."""
    machine.run(
        "fallocate -l $(( ($(df --output=avail -k / | tail -1) - 2048) * 1024 )) /var/log/runaway.log;"
        " head -c 4M /dev/zero >> /var/log/runaway.log",
        check=False,
    )


def disk_full(ship: Ship) -> None:
    ship.later(ship.ground, "rm -f /var/log/runaway.log")
    fill(ship.ground)


def disk_full_at_start(ship: Ship) -> None:
    disk_full(ship)
    ship.later(ship.ground, "systemctl --no-block restart longhaul")
    ship.ground.run("systemctl --no-block restart longhaul")


def make_room(ship: Ship, found: str) -> None:  # noqa: ARG001 - the words say that room is lacking, and where
    """Removes the file that filled the disk."""
    ship.ground.run("rm -f /var/log/runaway.log")


def broken_cache(ship: Ship) -> None:
    """The disk of the cache has an error, and the kernel has made it read-only."""
    machine = ship.ground
    ship.later(machine, "umount /var/cache/longhaul; systemctl --no-block restart longhaul")
    machine.run(
        "mount -t tmpfs -o ro,size=2g,mode=750,uid=$(id -u longhaul),gid=$(id -g longhaul) tmpfs /var/cache/longhaul"
        " && systemctl --no-block restart longhaul"
    )


def writable_cache(ship: Ship, found: str) -> None:
    """Repairs the disk, and types the command if the words have one."""
    ship.ground.run("mount -o remount,rw /var/cache/longhaul", check=False)
    if found.startswith("systemctl"):
        ship.ground.run(found, check=False)


def clocked(machine: Machine, library: Path) -> None:
    """Gives a machine a clock of its own, for all programs that ask a C library, and commands that set it."""
    machine.write("/usr/local/lib/test-clock.so", library.read_bytes(), 0o755)
    machine.write(CLOCK, struct.pack("=q", 0))
    machine.write("/etc/ld.so.preload", "/usr/local/lib/test-clock.so\n")
    machine.write("/etc/systemd/system/service.d/clock.conf", f"[Service]\nEnvironment=LONGHAUL_TEST_CLOCK={CLOCK}\n")
    back = f"printf '\\0\\0\\0\\0\\0\\0\\0\\0' | dd of={CLOCK} conv=notrunc status=none"
    machine.write("/usr/local/bin/timedatectl", f'#!/bin/sh\ncase "$1" in set-*) {back};; esac\n', 0o755)
    machine.write(
        "/usr/local/bin/date", f'#!/bin/sh\ncase "$1" in -s*|--set*) {back};; *) exec /bin/date "$@";; esac\n', 0o755
    )
    machine.run("systemctl daemon-reload")
    machine.environment["LONGHAUL_TEST_CLOCK"] = CLOCK
