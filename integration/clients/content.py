"""The files that client programs fetch: archives, a package repository, an index of Python packages, a git repository
and a video. Every byte is the same in every run, but for what the programs that make them add."""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import subprocess
import tarfile
from pathlib import Path

ARCHIVE_FILES = 300
LARGE_BYTES = 5_000_000
PARTIAL_BYTES = 40_000
"""The part of the archive that a resumed download has already."""


def write_content(folder: Path) -> Path:
    """Writes everything below `folder/www`, which an origin serves. Returns that folder."""
    www = folder / "www"
    www.mkdir()
    _archives(www)
    (www / "noise.bin").write_bytes(random.Random(4).randbytes(100_000))
    (www / "small.txt").write_text("a small text\n" * 40)
    (www / "large.json").write_text("[" + ",".join(f'{{"n":{n},"square":{n * n}}}' for n in range(40_000)) + "]")
    _debian(www / "debian", folder)
    _python(www / "simple")
    _git(www / "git", folder)
    _video(www)
    (www / "dav").mkdir()
    subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
    return www


def _archives(www: Path) -> None:
    """An archive of text that compresses seven to one, and a large one that does not compress."""
    drawn = random.Random(1)
    text = {
        f"source/{n}.c": "".join(f"int value_{n}_{drawn.randrange(10**6)};\n" for _ in range(80)).encode()
        for n in range(ARCHIVE_FILES)
    }
    (www / "archive.tar.gz").write_bytes(packed(text))
    (www / "large.tar.gz").write_bytes(packed({"noise": drawn.randbytes(LARGE_BYTES)}))


def packed(files: dict[str, bytes]) -> bytes:
    """Returns a .tar.gz without times."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packing, tarfile.open(fileobj=packing, mode="w") as archive:
        for name, body in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    return out.getvalue()


def _debian(repository: Path, folder: Path) -> None:
    """A repository of one package, without signatures, whose index is in gzip alone."""
    tree = folder / "package"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(
        "Package: sample\nVersion: 1.0\nArchitecture: all\nMaintainer: Nobody <nobody@example.org>\n"
        "Description: a sample\n"
    )
    (tree / "note").write_bytes(random.Random(2).randbytes(100_000))
    repository.mkdir()
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "--build", tree, repository / "sample.deb"], check=True, capture_output=True
    )
    package = (repository / "sample.deb").read_bytes()
    entry = (tree / "DEBIAN" / "control").read_text() + (
        f"Filename: ./sample.deb\nSize: {len(package)}\nSHA256: {hashlib.sha256(package).hexdigest()}\n"
    )
    index = gzip.compress(entry.encode(), mtime=0)
    (repository / "Packages.gz").write_bytes(index)
    (repository / "Release").write_text(
        "Origin: sample\nSuite: ./\nDate: Sat, 01 Nov 2025 00:00:00 UTC\nSHA256:\n"
        f" {hashlib.sha256(index).hexdigest()} {len(index)} Packages.gz\n"
        f" {hashlib.sha256(entry.encode()).hexdigest()} {len(entry)} Packages\n"
    )


BACKEND = """
def prepare_metadata_for_build_wheel(folder, settings=None):
    import os
    os.mkdir(os.path.join(folder, "sample-1.0.dist-info"))
    with open(os.path.join(folder, "sample-1.0.dist-info", "METADATA"), "w") as out:
        out.write("Metadata-Version: 2.1\\nName: sample\\nVersion: 1.0\\n")
    return "sample-1.0.dist-info"
"""


def _python(index: Path) -> None:
    """An index of one package, whose source archive needs no other package to be built."""
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    files = {"pyproject.toml": project, "backend.py": BACKEND, "PKG-INFO": "Metadata-Version: 2.1\nName: sample\n"}
    archive = packed({f"sample-1.0/{name}": text.encode() for name, text in files.items()})
    home = index / "sample"
    home.mkdir(parents=True)
    (home / "sample-1.0.tar.gz").write_bytes(archive)
    digest = hashlib.sha256(archive).hexdigest()
    link = f'<a href="sample-1.0.tar.gz#sha256={digest}">sample-1.0.tar.gz</a>'
    (home / "index.html").write_text(f"<!doctype html><html><body>{link}</body></html>")


def _git(repositories: Path, folder: Path) -> None:
    """A repository with some hundred objects, once for each that is pushed to."""
    tree = folder / "tree"
    tree.mkdir()
    drawn = random.Random(3)
    for number in range(60):
        (tree / f"file-{number}").write_bytes(drawn.randbytes(4000))
    when = {"GIT_AUTHOR_DATE": "2025-11-01T00:00:00Z", "GIT_COMMITTER_DATE": "2025-11-01T00:00:00Z"}
    who = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.org", "-c", "init.defaultBranch=main"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "files"]):
        subprocess.run(
            ["git", *who, *command], cwd=tree, check=True, env={"PATH": "/usr/bin:/bin", "HOME": "/", **when}
        )
    repositories.mkdir()
    bare = repositories / "sample.git"
    subprocess.run(["git", "clone", "-q", "--bare", tree, bare], check=True)
    subprocess.run(["git", "-C", bare, "config", "http.receivepack", "true"], check=True)


def _video(www: Path) -> None:
    """Two seconds, with the index of the file at its end, so that a player seeks. Absent without ffmpeg."""
    source = ["-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=2", "-c:v", "mpeg4", "-threads", "1"]
    try:
        subprocess.run(
            ["ffmpeg", "-v", "error", *source, "-bitexact", "-flags", "+bitexact", www / "video.mp4"], check=True
        )
    except FileNotFoundError:
        return
