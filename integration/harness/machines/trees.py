"""Root file systems with systemd and ssh, as a machine has them after its installation. They are made once, below
target/roots, and never change: a running machine writes elsewhere."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.host.artifacts import need_commands, need_root, scratch

DAYS_KEPT = 14
"""The age at which a root is made again, for the distribution's fixes."""
ALWAYS = (
    "usr-is-merged", "apt", "bind9-dnsutils", "ca-certificates", "curl", "dbus", "iproute2", "iputils-ping", "nftables",
    "openssh-client", "openssh-server", "procps", "sudo", "systemd", "systemd-sysv",
)  # fmt: skip
"""The packages of either kind."""
NO_CONSOLE = ("console-getty.service", "getty@.service")


@dataclass(frozen=True)
class Kind:
    """One distribution."""

    name: str
    user: str
    """The user whom ssh admits. Another one than root has sudo without a password, as in images of clouds."""
    suite: str = "bookworm"
    """Debian's release."""
    packages: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that differ from Debian's, by their path."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Symbolic links: where they lead, by their path."""
    after: tuple[str, ...] = ()
    """Commands in the root, at the end."""


DEBIAN = Kind("debian-12", "root", files={"etc/ssh/sshd_config.d/root.conf": "PermitRootLogin prohibit-password\n"})
UBUNTU = Kind(
    "as-ubuntu",
    "ubuntu",
    packages=("systemd-resolved", "ufw"),
    files={
        "etc/ssh/sshd_config.d/root.conf": "PermitRootLogin no\n",
        "etc/sudoers.d/ubuntu": "ubuntu ALL=(ALL) NOPASSWD:ALL\n",
        "etc/systemd/resolved.conf.d/lan.conf": "[Resolve]\nDNS=203.0.113.53\n",
    },
    links={"etc/resolv.conf": "../run/systemd/resolve/stub-resolv.conf"},
    after=("useradd --create-home --shell /bin/bash ubuntu", "systemctl enable systemd-resolved"),
)
"""A Debian 12 with the differences of Ubuntu's server that meet Longhaul: a stub resolver on 127.0.0.53, ufw, and no
logins of root. Ubuntu's own archive is not asked."""
DEBIAN_WITH_PYTHON = replace(DEBIAN, name="debian-12-python", packages=("python3", "python3-apt"))
"""A Debian that Ansible can change."""
KINDS = {kind.name: kind for kind in (DEBIAN, UBUNTU)}


def tree(kind: Kind) -> Path:
    """The folder with a root of this kind, which is made if there is none of late. Raises `Missing` without root or
    mmdebstrap."""
    need_root()
    need_commands("mmdebstrap")
    home = scratch("roots")
    made = home / kind.name
    with (home / f"{kind.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark = home / f"{kind.name}.made"
        wanted = repr(kind)
        fresh = mark.exists() and time.time() - mark.stat().st_mtime < DAYS_KEPT * 86_400
        if not (fresh and made.is_dir() and mark.read_text() == wanted):
            _make(kind, made)
            mark.write_text(wanted)
    return made


def _make(kind: Kind, made: Path) -> None:
    fresh = made.with_suffix(".fresh")
    for folder in (made, fresh):
        shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(
        [
            "mmdebstrap", "--quiet", "--variant=minbase", "--format=directory",
            f"--include={','.join(ALWAYS + kind.packages)}",
            *(["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"] if kind.suite == "bookworm" else []),
            '--aptopt=Acquire::Languages "none"',
            *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("man", "locale", "info")),
            kind.suite, fresh,
        ],
        check=True, capture_output=True, timeout=900,
    )  # fmt: skip
    for command in kind.after:
        subprocess.run(["chroot", fresh, *command.split()], check=True, capture_output=True, timeout=60)
    for unit in NO_CONSOLE:
        subprocess.run(["chroot", fresh, "systemctl", "mask", unit], check=True, capture_output=True, timeout=60)
    for path, text in kind.files.items():
        place = fresh / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        place.chmod(0o440 if "sudoers" in path else 0o644)
    for path, target in kind.links.items():
        (fresh / path).unlink(missing_ok=True)
        (fresh / path).symlink_to(target)
    # Each machine gets an id of its own when it boots, which would fail in a root that is read alone.
    (fresh / "etc" / "machine-id").write_text("")
    fresh.rename(made)
