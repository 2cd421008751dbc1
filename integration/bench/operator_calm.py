"""Times without a fault: an hour of normal traffic with ten changes, in which nothing may alarm, and a restart under
load, which no client may notice."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.operator_bed import WWW, Bed
from bench.operator_faults import CONFIG
from bench.operator_watch import Clients, healthy
from harness.machines.machine import Machine
from harness.net.topology import SITES

HOUR_S, QUICK_S = 3600, 300
EACH_S = 5
"""The time between two looks."""
CROWD, CROWD_S = 500, 30


def replace(machine: Machine, old: str, new: str) -> None:
    """Edits the configuration as an operator does."""
    text = machine.read(CONFIG).decode()
    assert old in text, text
    machine.write(CONFIG, text.replace(old, new))


def renewed(bed: Bed, end: str) -> None:
    """Renews the certificate of an end, and copies it."""
    desk, files = bed.machine("desk"), f"{end}.pem {end}.key"
    desk.run(f"longhaul pair renew {end}")
    packed = f"tar -C pair/{end} --owner=root --group=longhaul -cf - {files}"
    made = subprocess.run(desk.line(packed), check=True, capture_output=True, timeout=60).stdout
    subprocess.run(bed.machine(end).line("tar -xpf - -C /etc/longhaul"), input=made, check=True, timeout=60)


def changes(bed: Bed) -> list[tuple[str, Callable[[], object]]]:
    """Ten things that operators do on a day without a fault."""
    ship, ground = bed.machine("ship"), bed.machine("ground")
    counting = "nft -f - <<'END'\ntable inet site { chain rules { type filter hook input priority 5; counter; }; }\nEND"
    return [
        ("the ship's round-trip time is set to 620ms", lambda: replace(ship, "rtt: 600ms", "rtt: 620ms")),
        ("the ground's, too", lambda: replace(ground, "rtt: 600ms", "rtt: 620ms")),
        ("the file is written again, without a change", lambda: ship.run(f"touch {CONFIG}")),
        ("the ship's certificate is renewed", lambda: renewed(bed, "ship")),
        ("the ground's certificate is renewed", lambda: renewed(bed, "ground")),
        ("a packet filter that counts is loaded", lambda: ship.run(counting)),
        ("systemctl reload longhaul", lambda: ship.run("systemctl reload longhaul")),
        ("images stay as they are", lambda: replace(ground, "role: ground", "role: ground\npage: { images: off }")),
        ("the journal is rotated", lambda: ship.run("journalctl --rotate --vacuum-time=1s")),
        (
            "the ground's limits change, which starts another Envoy",
            lambda: replace(ground, "role: ground", "role: ground\nlimits: { connections: 6000 }"),
        ),
    ]


def alarms(bed: Bed, seconds: float) -> Iterator[str]:
    """Watches both ends for so long, with a change at equal distances. Yields a line for each alarm: the time, the
    end, the last change and the words."""
    ends = [bed.machine(name) for name in ("ship", "ground")]
    with Clients(bed) as clients:
        if healthy(bed, clients, time.time(), 120) is None:
            raise RuntimeError(f"the pair does not serve: {clients.failed(0)}")
        began, standing = time.time(), dict.fromkeys((end.name for end in ends), False)
        last, coming = "none", changes(bed)
        each = seconds / (len(coming) + 1)
        while (now := time.time() - began) < seconds:
            if coming and now > each * (11 - len(coming)):
                last, change = coming.pop(0)
                change()
            for end in ends:
                said = end.run("longhaul status 2>&1", check=False)
                wrong = [line for line in said.stdout.splitlines() if line.startswith(("problem:", "error:"))]
                if said.returncode and not standing[end.name]:
                    yield f'{now:.0f} s, {end.name}, after "{last}": {"; ".join(wrong) or said.stdout[:200]}'
                standing[end.name] = bool(said.returncode)
            time.sleep(EACH_S)


def restart_under_load(bed: Bed) -> dict[str, int]:
    """Restarts the box in the middle of a crowd. Returns how many clients had which end."""
    return under_load(bed, "systemctl restart longhaul")


def under_load(bed: Bed, command: str) -> dict[str, int]:
    """Types a command at the box in the middle of a crowd. Returns how many clients had which end."""
    program = Path(__file__).with_name("operator_crowd.py")
    address = str(next(SITES.hosts()))
    line = [sys.executable, program, address, WWW, str(CROWD), str(CROWD_S)]
    crowd = subprocess.Popen(bed.clients.inside(line), stdout=subprocess.PIPE, text=True)
    try:
        time.sleep(CROWD_S / 2)
        bed.machine("gateway").run(command, timeout_s=300)
        said, _ = crowd.communicate(timeout=300)
    finally:
        crowd.kill()
        crowd.wait()
    return json.loads(said)


def broken(ends: dict[str, int]) -> int:
    """The clients whose connection was accepted and then reset or closed without a response."""
    return sum(number for end, number in ends.items() if end.startswith(("reset", "closed")))
