"""How many inotify instances beds take of what the kernel allows one user: an Envoy that gets none does not start.

Every file of configuration that Envoy watches is an instance. Linux allows 128 a user unless told otherwise, which is
plenty for a gateway and little for a test bed with a dozen of them.
"""

from __future__ import annotations

from pathlib import Path

EDGE = 11
"""What Envoy and `longhaul run` of one box open; counted, with one to spare."""
PAIR = 18
"""The same for both ends of a pair."""

LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
SUGGESTED = 1024


def free() -> int:
    """Instances that root can still open: the limit, less what any process of root's holds."""
    return int(LIMIT.read_text()) - sum(_held(process) for process in Path("/proc").glob("[0-9]*"))


def too_few(needed: int, left: int) -> str:
    """What to tell whoever's machine does not let one bed stand."""
    return (
        f"one bed needs {needed} inotify instances, and of fs.inotify.max_user_instances = {LIMIT.read_text().strip()} "
        f"{max(0, left)} are free; allow more: sysctl -w fs.inotify.max_user_instances={SUGGESTED}"
    )


def _held(process: Path) -> int:
    try:
        if process.stat().st_uid != 0:
            return 0
        return sum(1 for one in (process / "fd").iterdir() if str(one.readlink()) == "anon_inode:inotify")
    except OSError:  # It ended meanwhile.
        return 0
