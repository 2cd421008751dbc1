"""`make apt-repo KEY=FINGERPRINT`: an apt repository as a folder that any web server can publish.

    longhaul.pgp        the public key, for /etc/apt/keyrings
    longhaul.sources    the file for /etc/apt/sources.list.d
    pool/               every version that was added; the older ones are the way back
    dists/stable/       the signed lists of them

A client verifies the signature of InRelease, which has the hashes of the lists, which have the hashes of the packages.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import lzma
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from email.utils import formatdate
from pathlib import Path

from programs import ARCHES
from project import SUMMARY, TARGET, Failed, epoch, run

SUITE, COMPONENT = "stable", "main"
KEYRING = "longhaul.pgp"
SOURCES = "longhaul.sources"
URL = "https://packages.example.org/longhaul"
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": lambda text: gzip.compress(text, mtime=0),
    ".xz": lzma.compress,
}
"""The forms of a list of packages. apt takes the smallest that it can read."""
HASH = "SHA256"


def main() -> int:
    """Adds packages to the folder, and signs it. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--key", required=True, help="the key that signs, as gpg names it: a fingerprint or an address")
    parser.add_argument("--out", type=Path, default=TARGET / "apt", help="the folder; packages that it has stay")
    parser.add_argument("--url", default=URL, help="where the folder will be published, for longhaul.sources")
    parser.add_argument("debs", nargs="*", type=Path, help="the packages to add [default: those of make package]")
    arguments = parser.parse_args()
    try:
        publish(arguments.out, arguments.key, arguments.url, arguments.debs or made())
    except Failed as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


def made() -> list[Path]:
    """Returns the packages of `make package`, of every version and architecture that is there."""
    found = sorted((TARGET / "package").glob("longhaul_*.deb"))
    if not found:
        raise Failed('there is no package: make package, or make package ARCHES="amd64 arm64"')
    return found


def publish(out: Path, key: str, url: str, debs: Sequence[Path]) -> None:
    """Adds `debs` to the folder `out`, and writes and signs its lists."""
    public = exported(key)
    pool = out / "pool"
    pool.mkdir(parents=True, exist_ok=True)
    for deb in debs:
        add(deb, pool)
    suite = out / "dists" / SUITE
    shutil.rmtree(suite, ignore_errors=True)
    architectures = [arch for arch in ARCHES if list(pool.glob(f"*_{arch}.deb"))]
    for arch in architectures:
        index(out, suite / COMPONENT / f"binary-{arch}", arch)
    release = suite / "Release"
    release.write_text(release_of(suite, architectures))
    sign(key, "--clearsign", release, suite / "InRelease")
    sign(key, "--detach-sign", release, suite / "Release.gpg")
    (out / KEYRING).write_bytes(public)
    (out / SOURCES).write_text(sources(url))
    names = ", ".join(sorted(path.stem for path in pool.iterdir()))
    print(f"{out}: {names}\nPublish the folder as it is at {url}.")


def add(deb: Path, pool: Path) -> None:
    """Copies a package under the name that apt expects. A version that was published never changes."""
    fields = run("dpkg-deb", "--showformat=${Package}_${Version}_${Architecture}", "--show", deb).strip()
    place = pool / f"{fields}.deb"
    if place.exists() and place.read_bytes() != deb.read_bytes():
        raise Failed(f"{place} is published with other content: raise the version in Cargo.toml")
    if not place.exists():
        shutil.copyfile(deb, place)


def index(out: Path, folder: Path, arch: str) -> None:
    """Writes the list of packages of an architecture, also under its hashes: a client that reads while the folder is
    replaced gets the list that its InRelease names."""
    text = run("dpkg-scanpackages", "--multiversion", "--arch", arch, "pool", cwd=out).encode()
    by_hash = folder / "by-hash" / HASH
    by_hash.mkdir(parents=True)
    for ending, pack in PACKED.items():
        packed = pack(text)
        (folder / f"Packages{ending}").write_bytes(packed)
        (by_hash / hashlib.sha256(packed).hexdigest()).write_bytes(packed)


def release_of(suite: Path, architectures: Sequence[str]) -> str:
    """Returns the file with the hashes of all lists."""
    head = {
        "Origin": "Longhaul",
        "Label": "Longhaul",
        "Suite": SUITE,
        "Codename": SUITE,
        "Date": formatdate(epoch(), usegmt=True),
        "Architectures": " ".join(architectures),
        "Components": COMPONENT,
        "Description": SUMMARY,
        "Acquire-By-Hash": "yes",
    }
    lines = [f"{name}: {value}" for name, value in head.items()]
    return "\n".join([*lines, f"{HASH}:", *hashes(suite)]) + "\n"


def hashes(suite: Path) -> Iterator[str]:
    """Yields a line for each list."""
    for path in sorted(suite.rglob("Packages*")):
        content = path.read_bytes()
        yield f" {hashlib.sha256(content).hexdigest()} {len(content):16} {path.relative_to(suite)}"


def sources(url: str) -> str:
    """Returns the file for /etc/apt/sources.list.d (sources.list(5))."""
    fields = {"Types": "deb", "URIs": url, "Suites": SUITE, "Components": COMPONENT}
    return "".join(f"{name}: {value}\n" for name, value in fields.items()) + f"Signed-By: /etc/apt/keyrings/{KEYRING}\n"


def exported(key: str) -> bytes:
    """Returns the public half of a key."""
    done = subprocess.run(["gpg", "--batch", "--export", key], capture_output=True, check=False)
    if done.returncode != 0 or not done.stdout:
        raise Failed(f"gpg has no key {key}: gpg --list-secret-keys lists those that it has")
    return done.stdout


def sign(key: str, how: str, path: Path, out: Path) -> None:
    """Signs a file."""
    run("gpg", "--batch", "--yes", "--local-user", key, "--digest-algo", "SHA512", how, "--output", out, path)


if __name__ == "__main__":
    sys.exit(main())
