"""Counts the inotify instances that beds take of the limit for one user. An Envoy that gets none does not start.

Every configuration file that Envoy watches is an instance. Linux allows 128 for each user by default. That is plenty
for a gateway and little for a test bed with a dozen of them.
"""

from __future__ import annotations

from pathlib import Path

EDGE = 14
"""The instances that Envoy and `longhaul run` of one box open. The number is counted, with one to spare."""
PAIR = 30
"""The instances of both ends of a pair, counted in the same way."""
BROWSER = 2
"""The instances of the browser that loads a page."""

LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
SUGGESTED = 1024


def free() -> int:
    """The instances that root can still open: the limit, less those that processes of root hold."""
    return int(LIMIT.read_text()) - sum(map(held, Path("/proc").glob("[0-9]*")))


def too_few(needed: int, left: int) -> str:
    """The message for a machine that does not allow the instances of one bed."""
    return (
        f"one bed needs {needed} inotify instances, and of fs.inotify.max_user_instances = {LIMIT.read_text().strip()} "
        f"{max(0, left)} are free; allow more: sysctl -w fs.inotify.max_user_instances={SUGGESTED}"
    )


def held(process: Path) -> int:
    """The instances that a process of root holds. `process` is its folder in /proc."""
    try:
        if process.stat().st_uid != 0:
            return 0
        return sum(1 for one in (process / "fd").iterdir() if str(one.readlink()) == "anon_inode:inotify")
    except OSError:  # It ended meanwhile.
        return 0
