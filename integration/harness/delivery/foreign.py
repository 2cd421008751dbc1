"""A Debian of another architecture in a folder. Its programs run under qemu, in a user namespace with an interpreter of
its own, so nothing is registered on the machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.host.artifacts import need_commands, need_root
from harness.host.waiting import wait_for
from harness.net.namespaces import Namespace

ARCH = "arm64"
FORMAT = Path("/usr/lib/binfmt.d/qemu-aarch64.conf")
"""How Debian's qemu-user-static registers itself."""
PACKAGES = (
    "base-files", "base-passwd", "ca-certificates", "coreutils", "dash", "debianutils", "diffutils", "dpkg",
    "findutils", "grep", "gzip", "libc-bin", "libc6", "libgcc-s1", "libpam-modules", "login", "passwd", "sed", "tar",
    "usr-is-merged",
)  # fmt: skip
HOOKS = "/usr/share/mmdebstrap/hooks/merged-usr"
IDS = 65_536
ENTER = """
read -r go
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
cat "$1" > /proc/sys/fs/binfmt_misc/register
mount --bind "$0" "$0"
cd "$0"
mount -t proc proc proc
mount --rbind /dev dev
shift
exec chroot . env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$@"
"""


class Foreign:
    """A root whose programs are not of this machine's architecture."""

    def __init__(self, folder: Path, namespace: Namespace) -> None:
        self.folder = folder
        self.namespace = namespace

    def path(self, place: str) -> Path:
        """Returns the path of a file of the root, as seen from outside."""
        return self.folder / place.lstrip("/")

    def _start(self, command: Sequence[str | Path]) -> subprocess.Popen[str]:
        line = [
            "unshare",
            "--user",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-euc",
            ENTER,
            str(self.folder),
        ]
        words = [*line, str(FORMAT), *map(str, command)]
        started = subprocess.Popen(
            self.namespace.inside(words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for kind in ("uid", "gid"):
            _write_map(Path(f"/proc/{started.pid}/{kind}_map"))
        assert started.stdin
        started.stdin.write("go\n")
        started.stdin.flush()
        return started

    def run(self, *command: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs a command in the root to its end. Emulated programs take tens of times as long."""
        started = self._start(command)
        said, _ = started.communicate(timeout=300)
        if check and started.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: exit {started.returncode}: {said}")
        return subprocess.CompletedProcess(command, started.returncode, said, "")

    @contextmanager
    def running(self, *command: str | Path) -> Iterator[None]:
        """Runs a command in the root until the context ends. Its processes end with it."""
        started = self._start(command)
        try:
            yield
        finally:
            # The first process of the namespace takes the others with it.
            for child in Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split():
                os.kill(int(child), signal.SIGKILL)
            started.communicate(timeout=30)


def _write_map(path: Path) -> None:
    """Maps the first ids of a user namespace to themselves, as soon as the process is in it."""
    own = Path("/proc/self/ns/user").readlink()
    wait_for("a user namespace", lambda: (path.parent / "ns" / "user").readlink() != own, 10, 0.01)
    path.write_text(f"0 0 {IDS}\n")


@contextmanager
def foreign_debian(folder: Path, namespace: Namespace) -> Iterator[Foreign]:
    """Extracts the packages of a Debian for `ARCH`. None of their scripts has run."""
    need_root()
    need_commands("mmdebstrap", "qemu-aarch64-static")
    line = [
        "mmdebstrap", "--quiet", f"--architectures={ARCH}", "--variant=extract", f"--include={','.join(PACKAGES)}",
        "--skip=check/qemu", f"--hook-dir={HOOKS}", "bookworm", folder,
    ]  # fmt: skip
    subprocess.run(line, check=True, capture_output=True, timeout=300)
    for name in ("passwd", "group"):
        master = folder / "usr" / "share" / "base-passwd" / f"{name}.master"
        (folder / "etc" / name).write_text(master.read_text())
    # As the script of ca-certificates does.
    authorities = (folder / "usr" / "share" / "ca-certificates").rglob("*.crt")
    bundle = folder / "etc" / "ssl" / "certs" / "ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_text("".join(one.read_text() for one in sorted(authorities)))
    yield Foreign(folder, namespace)
    shutil.rmtree(folder)
