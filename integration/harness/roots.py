"""A Debian root in a folder, with a network namespace: a machine to install a package on, or an image unpacked."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from .namespaces import Namespace

USER = 999
"""Who an image runs as."""


class Root:
    """Commands run in a mount namespace of their own, so nothing stays mounted; files they write stay in the folder."""

    def __init__(self, folder: Path, namespace: Namespace) -> None:
        self.folder = folder
        self.namespace = namespace

    def path(self, place: str) -> Path:
        """A file of the root, seen from outside."""
        return self.folder / place.lstrip("/")

    def inside(self, command: Sequence[str | Path], *, user: str = "") -> list[str]:
        """The command line that runs `command` in there."""
        mounts = 'mount --bind "$0" "$0" && cd "$0" && mount -t proc proc proc && mount --rbind /dev dev'
        return self._enter(mounts, ["chroot", *([f"--userspec={user}"] if user else [])], command)

    def restricted(self, command: Sequence[str | Path], config: Path) -> list[str]:
        """As a restricted pod runs it: no capability to be had, no new privileges, a root that cannot be written to.
        `config` is the folder that is mounted at /etc/longhaul."""
        owned = f"uid={USER},gid={USER}"
        mounts = (
            'mount --bind "$0" "$0" && cd "$0" && mount -t proc proc proc && mount --rbind /dev dev'
            f" && mount --bind '{config}' etc/longhaul"
            + "".join(
                f" && mount -t tmpfs -o {owned} tmpfs {at}" for at in ("run/longhaul", "var/cache/longhaul", "tmp")
            )
            + " && mount -t tmpfs tmpfs dev/shm && mount -o remount,bind,ro ."
        )
        ids = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        return self._enter(
            mounts, ["chroot"], [*ids, "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", *command]
        )

    def run(
        self, *command: str | Path, check: bool = True, timeout_s: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command in there to its end, as root."""
        done = subprocess.run(self.inside(command), capture_output=True, text=True, timeout=timeout_s, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def _enter(self, mounts: str, chroot: Sequence[str], command: Sequence[str | Path]) -> list[str]:
        # $1 to $@ are the command, its chroot first. PATH is a machine's, not that of whoever runs the tests.
        script = f'{mounts} && exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$@"'
        line = ["unshare", "--mount", "sh", "-c", script, str(self.folder), *chroot, ".", *map(str, command)]
        return self.namespace.inside(line)

    def files(self) -> set[str]:
        """Every path in the root but what processes leave in /proc, /dev and /tmp."""
        skipped = ["(", "-path", "./proc", "-o", "-path", "./dev", "-o", "-path", "./tmp", ")", "-prune"]
        find = ["find", ".", "-xdev", *skipped, "-o", "-print"]
        done = subprocess.run(find, cwd=self.folder, capture_output=True, text=True, check=True)
        return set(done.stdout.splitlines())
