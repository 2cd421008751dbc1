"""Pairs with the files of `longhaul pair init` and the settings of `longhaul host`, beside networks without boxes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.boxes.pair import PIPE_PORT, REMOTE_NAME, Pair
from harness.boxes.pep import Pep, command
from harness.lab.bed import CONGESTION_CONTROL, use_congestion_control
from harness.lab.line import FAR, NEAR_DEVICE, NEAR_HOME, Line
from harness.lab.links import Link, link
from harness.net.link import Link as Wire
from harness.net.redirect import applied
from harness.net.topology import RESOLVER
from harness.origins.program import Origins, Site


@dataclass
class Way:
    """A network between clients and servers, with a pair or without boxes."""

    name: str
    """pair or direct."""
    folder: Path
    line: Line
    pair: Pair | None = None

    @property
    def wire(self) -> Wire:
        """Its emulated link."""
        assert self.line.link
        return self.line.link


@contextmanager
def by_pair(folder: Path, site: Site, profile: str) -> Iterator[Way]:
    """A pair without a list, whose boxes have never seen a name."""
    with direct(folder, site, profile) as way, pair_of_init(folder, way.line, link(profile)) as both:
        yield Way("pair", folder, way.line, both)


@contextmanager
def direct(folder: Path, site: Site, profile: str) -> Iterator[Way]:
    """The same network, whose boxes only route."""
    folder.mkdir()
    with Line(folder, profile, seed=1) as line, Origins(site.write(folder / "site.json"), folder, line.internet):
        use_congestion_control(line, CONGESTION_CONTROL)
        yield Way("direct", folder, line)


@contextmanager
def side_by_side(folder: Path, site: Site, profile: str) -> Iterator[tuple[Way, Way]]:
    """Both ways, each with a link and servers of its own."""
    with by_pair(folder / "pair", site, profile) as ours, direct(folder / "direct", site, profile) as theirs:
        yield ours, theirs


@contextmanager
def pair_of_init(
    folder: Path, line: Line, stated: Link, *, trusted: Path | None = None, remote_cache: str = ""
) -> Iterator[Pair]:
    """A pair on a line. `stated` is the link of its files. The ground checks certificates of origins against `trusted`.
    `remote_cache` is the section `cache` of the remote. Without it, the remote has a folder for its own cache alone."""
    remote, ground = files_of_init(folder, stated, remote_cache)
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


def files_of_init(folder: Path, stated: Link, remote_cache: str = "") -> tuple[Path, Path]:
    """Returns the files of the remote and of the ground, new ones if the folder has none. Their only additions are the
    folders of the caches, or the cache of the remote."""
    home = folder / "init"
    remote, ground = (home / end / "longhaul.yaml" for end in (REMOTE_NAME, "ground"))
    if ground.exists():
        return remote, ground
    options = {**stated.setting, "clients": NEAR_HOME, "resolver": RESOLVER, "dir": str(home)}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    done = command("pair", "init", REMOTE_NAME, f"{FAR}:{PIPE_PORT}", *words)
    if done.returncode:
        raise RuntimeError(f"longhaul pair init: {done.stderr}")
    with ground.open("a") as file:
        file.write(f'cache: {{ dir: "{folder / "cache"}" }}\n')
    own_folder = f'{{ dir: "{folder / "cache"}" }}'
    with remote.open("a") as file:
        file.write(f"cache: {remote_cache or own_folder}\n")
    return remote, ground


def site_of(names: dict[str, str]) -> Site:
    """Returns a site that resolves each name to an address."""
    return Site(dns=[f"{RESOLVER}:53"], records={name: [address] for name, address in names.items()})
