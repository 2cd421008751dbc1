"""A pair as its operator sets it up: the files of `longhaul pair init`, and the settings of `longhaul host`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.boxes.pair import PIPE_PORT, REMOTE_NAME, Pair
from harness.boxes.pep import Pep, command
from harness.net.redirect import applied
from harness.net.topology import RESOLVER

from .line import FAR, NEAR_DEVICE, NEAR_HOME, Line


@contextmanager
def pair_of_init(
    folder: Path,
    line: Line,
    stated: dict[str, str],
    *,
    trusted: Path | None = None,
    remote_cache: str = "",
    remote_more: str = "",
) -> Iterator[Pair]:
    """A pair on a line. `stated` is the section `link` that its operator states. The ground checks certificates of
    origins against `trusted`. `remote_cache` is the section `cache` of the remote. Without it, the remote has a folder
    for its own cache alone. `remote_more` are further sections of its file."""
    remote, ground = files_of_init(folder, stated, remote_cache, remote_more)
    for end in ("remote", "ground"):
        (folder / end).mkdir(exist_ok=True)
    with (
        applied(line.gateway, ground, folder / "ground"),
        applied(line.near, remote, folder / "remote", NEAR_DEVICE),
        Pep(ground, folder / "ground", line.gateway, trusted=trusted) as far,
        Pep(remote, folder / "remote", line.near) as near,
    ):
        names = {"cert": f"{REMOTE_NAME}.pem", "key": f"{REMOTE_NAME}.key", "ca": "pair-ca.pem"}
        both = Pair(near, far, {key: str(remote.with_name(name)) for key, name in names.items()})
        both.until_piped()
        yield both


def files_of_init(
    folder: Path, stated: dict[str, str], remote_cache: str = "", remote_more: str = ""
) -> tuple[Path, Path]:
    """Returns the files of the remote and of the ground, new ones if the folder has none. Their only additions are the
    folders of the caches, or the cache of the remote, and `remote_more`."""
    home = folder / "init"
    remote, ground = (home / end / "longhaul.yaml" for end in (REMOTE_NAME, "ground"))
    if ground.exists():
        return remote, ground
    options = {**stated, "clients": NEAR_HOME, "resolver": RESOLVER, "dir": str(home)}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    done = command("pair", "init", REMOTE_NAME, f"{FAR}:{PIPE_PORT}", *words)
    if done.returncode:
        raise RuntimeError(f"longhaul pair init: {done.stderr}")
    with ground.open("a") as file:
        file.write(f'cache: {{ dir: "{folder / "ground" / "cache"}" }}\n')
    own_folder = f'{{ dir: "{folder / "remote" / "cache"}" }}'
    with remote.open("a") as file:
        file.write(f"cache: {remote_cache or own_folder}\n{remote_more}")
    return remote, ground
