"""Installing, upgrading and going back, as operators do it: `python operator_install.py`. Part of
`make bench ONLY=operator-product`.

`upgrade_lost_requests`: clients without a page while apt upgrades the box before them. `rollback_s`: the time of
`longhaul rollback`, of a change and of a file with which nothing starts. `recipes_run`: the recipes that give a box.
`notice_s`: the time until `notify.command` has heard of a problem.
`evening_failed`: 1 if a command of the guide's evening with a pair fails.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import operator_bed, operator_calm, operator_quick, parts
from bench.operator_faults import CONFIG
from harness.delivery.packages import PREVIOUS, packages
from harness.delivery.recipes import RECIPES
from harness.delivery.repository import KEYRING, SOURCES, Repository, published, repository
from harness.host.artifacts import Missing, need_commands, need_root
from harness.host.waiting import wait_for
from harness.machines import machine as machines
from harness.machines.machine import Machine
from harness.machines.trees import DEBIAN
from harness.net import namespaces
from harness.results.figures import at_least, at_most

TARGETS = [
    at_most("upgrade_lost_requests", 0),
    at_most("rollback_s", 10),
    at_most("notice_s", 10),
    at_least("recipes_run", len(RECIPES)),
    at_most("evening_failed", 0),
]
EVENING = "evening.md"
SAYS = {
    "longhaul rollback": "in force after",
    "journalctl LONGHAUL_PROBLEM": "longhaul: problem (ground_down)",
    "longhaul history": "change of the file",
}
"""The words that commands of the evening say."""
HEARD = "/var/lib/longhaul/heard"
NOTICE = f'#!/bin/sh\necho "$LONGHAUL_EVENT $LONGHAUL_PROBLEM $(id -un)" >> {HEARD}\n'
UPGRADE = "DEBIAN_FRONTEND=noninteractive apt-get --quiet --yes -o APT::Install-Recommends=false install longhaul"


def measure(folder: Path, *, quick: bool) -> tuple[parts.Figures, Any]:  # noqa: ARG001 - every part has it
    """Measures everything in a folder."""
    followed = recipes(folder)
    box, ends = on_a_box(folder)
    wrong = evening(folder)
    figures: parts.Figures = {
        **box,
        "recipes_run": sum(said == "ok" for said in followed.values()),
        "evening_failed": int(bool(wrong)),
    }
    return figures, {"recipes": followed, "clients": ends, "evening": wrong}


def evening(folder: Path) -> str:
    """Types the guide's evening on a pair that the quick start made. Returns the first command that fails."""
    place = folder / "evening"
    place.mkdir()
    with operator_bed.pair_bed(place, DEBIAN, packages().file("deb")) as bed:
        for page in (operator_quick.PAIR, EVENING):
            walked = operator_quick.walk(bed, page, DEBIAN)
            print("".join(f"    {line}\n" for line in walked.lines()), end="", flush=True)
            if wrong := walked.wrong or unsaid(walked):
                return wrong
    return ""


def unsaid(walked: operator_quick.Walked) -> str:
    """Returns the first command of the evening that does not say what its page promises."""
    for command, words in SAYS.items():
        for one in walked.commands:
            if walked.page == EVENING and one.command.startswith(command) and words not in one.said:
                return f"{one.machine}# {one.command} does not say {words!r}: {one.said}"
    return ""


def recipes(folder: Path) -> dict[str, str]:
    """Follows each recipe. Returns `ok`, or the reason why it gives no box."""
    said = {}
    for name, follow in RECIPES.items():
        place = folder / name
        place.mkdir()
        try:
            follow(place)
            said[name] = "ok"
        except (Missing, RuntimeError, AssertionError, TimeoutError, subprocess.SubprocessError) as error:
            said[name] = f"{type(error).__name__}: {error}"[:2000]
        print(f"    {name}: {said[name]}", flush=True)
    return said


def on_a_box(folder: Path) -> tuple[parts.Figures, dict[str, int]]:
    """Upgrades a box with systemd under load, and rolls its configuration back."""
    made = packages()
    with repository(folder / "repository") as source:
        former = made.previous(folder).rename(folder / f"longhaul_{PREVIOUS}_{made.arch}.deb")
        with operator_bed.one_box_bed(folder, DEBIAN, former) as bed:
            walked = operator_quick.walk(bed, operator_quick.ONE_BOX, DEBIAN)
            if walked.wrong:
                raise RuntimeError(walked.wrong)
            box = bed.machine("gateway")
            source.add(made.file("deb"))
            with published(source.folder, box.namespace, folder / "web.log"):
                trust(box, source)
                ends = operator_calm.under_load(bed, UPGRADE)
            assert made.version in box.run("longhaul --version").stdout
            heard_s = notice(box)
            back = {"change": of_a_change(box), "start": of_a_start(box)}
    print(f"    upgrade: {ends}; rollback: {back}", flush=True)
    figures: parts.Figures = {
        "upgrade_lost_requests": sum(number for end, number in ends.items() if end != "served"),
        "upgrade_clients": sum(ends.values()),
        "rollback_s": max(back.values()),
        "notice_s": heard_s,
    }
    return figures, ends


def trust(box: Machine, source: Repository) -> None:
    """Adds the repository in place of Debian's own, which is out of reach."""
    box.run("truncate --size=0 /etc/apt/sources.list && mkdir -p /etc/apt/keyrings")
    box.write(f"/etc/apt/keyrings/{KEYRING}", (source.folder / KEYRING).read_bytes())
    box.write(f"/etc/apt/sources.list.d/{SOURCES}", (source.folder / SOURCES).read_bytes())
    box.run("apt-get --quiet update")


def of_a_change(box: Machine) -> float:
    """The seconds in which a change that is in force is undone."""
    right = box.read(CONFIG).decode()
    box.write(CONFIG, f"{right}limits: {{ new_names_per_client: 77 }}\n")
    wait_for("the change is in force", lambda: "new_names_per_client: 77" in present(box), 30, 0.2)
    took = timed(box, "longhaul rollback")
    assert box.read(CONFIG).decode() == right
    box.run("longhaul status")
    return took


def of_a_start(box: Machine) -> float:
    """The seconds in which a box runs again that does not start with its file."""
    right = box.read(CONFIG).decode()
    box.write(CONFIG, "nonsense: 1\n")
    box.run("systemctl restart longhaul", check=False)
    took = timed(box, "longhaul rollback && systemctl restart longhaul")
    assert box.read(CONFIG).decode() == right
    box.run("systemctl is-active longhaul")
    return took


def notice(box: Machine) -> float:
    """The seconds from a refused change until the operator's program has heard of it. The unit's restrictions hold."""
    right = box.read(CONFIG).decode()
    box.write("/usr/local/bin/notice", NOTICE, 0o755)
    box.write(CONFIG, f"{right}notify: {{ command: /usr/local/bin/notice }}\n")
    wait_for("the program is in force", lambda: "notify" in present(box), 30, 0.2)
    began = time.monotonic()
    box.write(CONFIG, "nonsense: 1\n")
    heard = "begin change_refused longhaul\n"
    wait_for("a notice", lambda: heard in box.run(f"cat {HEARD}", check=False).stdout, 30, 0.1)
    took = time.monotonic() - began
    box.write(CONFIG, right)
    wait_for("the end of it", lambda: "notify" not in present(box), 30, 0.2)
    return took


def present(box: Machine) -> str:
    """The text of the configuration in force."""
    return box.run("longhaul history show $(longhaul history | awk 'NR==2 {print $1}')").stdout


def timed(box: Machine, command: str) -> float:
    """The seconds of a command that must succeed."""
    began = time.monotonic()
    box.run(command)
    return time.monotonic() - began


def ready() -> None:
    """Prepares the machine, or raises `Missing`."""
    need_root()
    need_commands("mmdebstrap", "nft", "nsenter", "unshare", "mkfs.ext4", "gpg", "dpkg-scanpackages", "podman", "runc")
    packages()
    machines.sweep()
    namespaces.sweep()


if __name__ == "__main__":
    sys.exit(
        parts.main("operator-install", __doc__, {"install": parts.of_module(sys.modules[__name__])}, TARGETS, ready)
    )
