"""`make apt-repo`: the folder that it makes, read by apt itself with a root of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.delivery.repository import KEYRING, SOURCES, Repository, repository
from harness.host.artifacts import need_commands

OLD, NEW = "0.0.1", "0.0.2"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Repository]:
    need_commands("apt-get", "gpgv")
    with repository(tmp_path / "repository") as one:
        yield one


def package(folder: Path, version: str, arch: str = "amd64", content: str = "") -> Path:
    """A package without files but one."""
    root = folder / f"{version}-{arch}"
    (root / "DEBIAN").mkdir(parents=True, exist_ok=True)
    (root / "note").write_text(content)
    fields = {
        "Package": "longhaul", "Version": version, "Architecture": arch, "Maintainer": "a <a@example.org>",
        "Description": "x",
    }  # fmt: skip
    (root / "DEBIAN" / "control").write_text("".join(f"{name}: {value}\n" for name, value in fields.items()))
    deb = folder / f"{version}-{arch}.deb"
    subprocess.run(["dpkg-deb", "-b", root, deb], check=True, capture_output=True)
    return deb


class Apt:
    """apt with files of its own, on a machine of an architecture."""

    def __init__(self, folder: Path, of: Repository, arch: str, keyring: Path) -> None:
        self.folder = folder
        partial = ("var/lib/apt/lists/partial", "var/cache/apt/archives/partial")
        for place in ("etc/sources.list.d", "var/lib/dpkg", *partial):
            (folder / place).mkdir(parents=True)
        (folder / "var/lib/dpkg/status").write_text("")
        text = (of.folder / SOURCES).read_text()
        uri = next(line for line in text.splitlines() if line.startswith("URIs: "))
        text = text.replace(uri, f"URIs: file:{of.folder}").replace(f"/etc/apt/keyrings/{KEYRING}", str(keyring))
        (folder / "etc/sources.list.d" / SOURCES).write_text(text)
        places = {"Dir": folder, "Dir::Etc": folder / "etc", "Dir::State::status": folder / "var/lib/dpkg/status"}
        settings = {**places, "APT::Architecture": arch, "APT::Architectures": arch, "APT::Sandbox::User": "root"}
        self._options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]

    def run(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        line = [program, *self._options, *words]
        return subprocess.run(line, cwd=self.folder, capture_output=True, text=True, check=False, timeout=60)

    def versions(self) -> list[str]:
        assert self.run("apt-get", "update").returncode == 0
        said = self.run("apt-cache", "madison", "longhaul").stdout
        return [line.split("|")[1].strip() for line in said.splitlines()]


def test_apt_finds_every_version_of_its_architecture_and_downloads_the_one_that_was_published(
    made: Repository, tmp_path: Path
) -> None:
    old = package(tmp_path, OLD, content="old")
    made.add(old, package(tmp_path, OLD, "arm64"))
    made.add(package(tmp_path, NEW))
    apt = Apt(tmp_path / "amd64", made, "amd64", made.folder / KEYRING)
    assert apt.versions() == [NEW, OLD]
    assert apt.run("apt-get", "download", f"longhaul={OLD}").returncode == 0
    [fetched] = apt.folder.glob("*.deb")
    assert fetched.read_bytes() == old.read_bytes()
    assert Apt(tmp_path / "arm64", made, "arm64", made.folder / KEYRING).versions() == [OLD]
    sums = (made.folder / "dists/stable/Release").read_text()
    assert "Acquire-By-Hash: yes" in sums
    assert (made.folder / "dists/stable/main/binary-arm64/by-hash/SHA256").is_dir()


def test_a_list_that_was_altered_and_a_list_of_another_key_are_refused(made: Repository, tmp_path: Path) -> None:
    made.add(package(tmp_path, OLD))
    with repository(tmp_path / "other") as other:
        other.add(package(tmp_path, NEW))
        stranger = Apt(tmp_path / "stranger", made, "amd64", other.folder / KEYRING)
        refused = stranger.run("apt-get", "update")
        assert "NO_PUBKEY" in refused.stderr, refused.stderr
        assert stranger.run("apt-cache", "madison", "longhaul").stdout == ""
    for path in made.folder.glob("dists/stable/main/binary-amd64/**/*"):
        if path.is_file():
            path.write_bytes(path.read_bytes() + b"\n")
    altered = Apt(tmp_path / "altered", made, "amd64", made.folder / KEYRING).run("apt-get", "update")
    assert altered.returncode != 0, altered


def test_a_published_version_never_changes_and_a_key_that_is_missing_is_named(made: Repository, tmp_path: Path) -> None:
    made.add(package(tmp_path, OLD, content="as it was published"))
    with pytest.raises(RuntimeError, match=r"published with other content: raise the version"):
        made.add(package(tmp_path, OLD, content="another one"))
    made.key = "nobody@example.org"
    with pytest.raises(RuntimeError, match=r"gpg has no key nobody@example\.org"):
        made.add(package(tmp_path, NEW))
