"""An apt repository, published on loopback: a fresh Debian installs from it, upgrades, and goes back."""

from __future__ import annotations

from pathlib import Path

from harness.net.namespaces import Namespace

from .packages import PREVIOUS, packages
from .repository import KEYRING, SOURCES, Repository, published, repository
from .roots import Root, fresh_debian

APT = ("apt-get", "--quiet", "--yes", "-o", "APT::Install-Recommends=false")


def follow(folder: Path) -> None:
    """Installs the former version, upgrades to the present one when it is published, and goes back."""
    made = packages()
    with (
        repository(folder / "repository") as source,
        Namespace("box") as namespace,
        fresh_debian(folder / "root", namespace) as root,
        published(source.folder, namespace, folder / "web.log"),
    ):
        source.add(made.previous(folder))
        trust(root, source)
        said = apt(root, "install", "longhaul")
        assert "Then: systemctl enable --now longhaul" in said, said
        assert installed(root) == PREVIOUS
        source.add(made.file("deb"))
        apt(root, "update")
        said = apt(root, "upgrade")
        assert "systemctl enable" not in said, said
        assert installed(root) == made.version
        apt(root, "install", "--allow-downgrades", f"longhaul={PREVIOUS}")
        assert installed(root) == PREVIOUS
        apt(root, "purge", "longhaul")
        assert not root.path("/usr/lib/longhaul").exists()


def trust(root: Root, source: Repository) -> None:
    """Adds the repository as the guide says, in place of Debian's own."""
    root.path("/etc/apt/sources.list").write_text("")
    root.path("/etc/apt/keyrings").mkdir(exist_ok=True)
    root.path(f"/etc/apt/keyrings/{KEYRING}").write_bytes((source.folder / KEYRING).read_bytes())
    root.path(f"/etc/apt/sources.list.d/{SOURCES}").write_text((source.folder / SOURCES).read_text())
    apt(root, "update")


def apt(root: Root, *words: str) -> str:
    """Runs apt in the root. Returns what it says."""
    done = root.run("env", "DEBIAN_FRONTEND=noninteractive", *APT, *words, timeout_s=300)
    return done.stdout + done.stderr


def installed(root: Root) -> str:
    """The version that dpkg has."""
    return root.run("dpkg-query", "--showformat=${Version}", "--show", "longhaul").stdout
