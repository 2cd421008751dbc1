"""A Debian root in a folder, with a network namespace: a machine for a package, or the files of an image."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.net.namespaces import Namespace

from .packages import base

USER = 999
"""User id of the image."""


class Root:
    """A root. Commands run in their own mount namespace, so nothing stays mounted. Their files stay in the folder."""

    def __init__(self, folder: Path, namespace: Namespace) -> None:
        self.folder = folder
        self.namespace = namespace

    def path(self, place: str) -> Path:
        """Returns the path of a file of the root, as seen from outside."""
        return self.folder / place.lstrip("/")

    def inside(self, command: Sequence[str | Path], *, user: str = "") -> list[str]:
        """Returns the command line that runs `command` in the root."""
        mounts = 'mount --bind "$0" "$0" && cd "$0" && mount -t proc proc proc && mount --rbind /dev dev'
        return self._enter(mounts, ["chroot", *([f"--userspec={user}"] if user else [])], command)

    def restricted(self, command: Sequence[str | Path], config: Path) -> list[str]:
        """Returns the command line for a restricted pod: no capabilities, no new privileges, a read-only root. `config`
        is the folder to mount at /etc/longhaul."""
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
        """Runs a command in the root to its end, as user root."""
        done = subprocess.run(self.inside(command), capture_output=True, text=True, timeout=timeout_s, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def _enter(self, mounts: str, chroot: Sequence[str], command: Sequence[str | Path]) -> list[str]:
        # $1 to $@ are the command, which begins with chroot. PATH is a machine's, not that of the user who runs the
        # tests.
        script = f'{mounts} && exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$@"'
        line = ["unshare", "--mount", "sh", "-c", script, str(self.folder), *chroot, ".", *map(str, command)]
        return self.namespace.inside(line)

    def files(self) -> set[str]:
        """Returns every path in the root, except those that processes leave in /proc, /dev and /tmp."""
        skipped = ["(", "-path", "./proc", "-o", "-path", "./dev", "-o", "-path", "./tmp", ")", "-prune"]
        find = ["find", ".", "-xdev", *skipped, "-o", "-print"]
        done = subprocess.run(find, cwd=self.folder, capture_output=True, text=True, check=True)
        return set(done.stdout.splitlines())


@contextmanager
def fresh_debian(folder: Path, namespace: Namespace) -> Iterator[Root]:
    """Extracts an unchanged Debian into a folder, for as long as the context lasts."""
    folder.mkdir()
    subprocess.run(["tar", "-C", folder, "-xf", base(), "--exclude=./dev/*"], check=True)
    yield Root(folder, namespace)
    # Each takes a quarter of a gigabyte, and pytest would keep it.
    shutil.rmtree(folder)
