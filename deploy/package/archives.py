"""A tree as .deb, .rpm and .tar.gz. nfpm makes the first two."""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from programs import Arch
from project import MAINTAINER, SUMMARY, TARGET, epoch, run
from tree import CONFIG

NFPM = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4"
SCRIPTS = Path(__file__).resolve().parent / "scripts"
DESCRIPTION = f"""{SUMMARY}
Longhaul rewrites pages, caches, steers DNS and, with a second box at the
other end of the link, keeps warm connections over it. Neither clients nor
web servers need any software for it."""
CONTROL = {
    # For useradd, for the certificate authorities that verify origins, and for `longhaul host`.
    "deb": {
        "depends": ["libc6 (>= 2.34)", "libgcc-s1", "passwd", "ca-certificates"],
        "recommends": ["nftables", "iproute2"],
    },
    "rpm": {
        "depends": ["glibc >= 2.34", "shadow-utils", "ca-certificates"],
        "recommends": ["nftables", "iproute", "iproute-tc"],
        "license": "Apache-2.0",
    },
}
RPM_PLACES = {"lib/systemd": "usr/lib/systemd", "usr/share/zsh/vendor-completions": "usr/share/zsh/site-functions"}
FOLDERS = (
    "etc/longhaul",
    "usr/lib/longhaul",
    "usr/share/longhaul",
    "usr/share/longhaul/dashboards",
    "usr/share/doc/longhaul",
)
"""The folders that belong to the package alone. rpm leaves those that are not listed."""
DEB_ONLY = ("usr/share/lintian/", "usr/share/doc/longhaul/changelog.gz")


def nfpm() -> Path:
    """The packager, built once; newer versions need a module that the proxy does not serve."""
    folder = TARGET / "tools" / "nfpm-2.43.4"
    if not (folder / "nfpm").exists():
        # Builds for this machine, even if the environment names another target.
        run(
            "go",
            "install",
            NFPM,
            env={"GOBIN": str(folder), "GOFLAGS": "", "GOARCH": "", "GOOS": "", "CGO_ENABLED": "0"},
        )
    return folder / "nfpm"


def package(packager: str, root: Path, arch: Arch, version: str, out: Path) -> Path:
    """Makes `out`, a deb or rpm of the tree at `root`."""
    contents: list[dict[str, Any]] = []
    for path in sorted(root.rglob("*")):
        place = path.relative_to(root).as_posix()
        if packager == "rpm":
            if place.startswith(DEB_ONLY):
                continue
            for old, new in RPM_PLACES.items():
                place = place.replace(old, new, 1) if place.startswith(old) else place
        owner = {"owner": "root", "group": "root", "mtime": _time()}
        if path.is_symlink():
            contents.append({"type": "symlink", "src": str(path.readlink()), "dst": f"/{place}", "file_info": owner})
        elif path.is_file():
            kind = {"type": "config|noreplace"} if place == CONFIG else {}
            mode = {"mode": path.stat().st_mode & 0o7777}
            contents.append({"src": str(path), "dst": f"/{place}", "file_info": {**owner, **mode}, **kind})
    # The package manager removes the folders that belong to the package alone.
    for folder in FOLDERS:
        contents.append({"type": "dir", "dst": f"/{folder}", "file_info": {"mode": 0o755, "mtime": _time()}})
    config = {
        "name": "longhaul", "arch": arch.name, "platform": "linux", "version": version, "version_schema": "none",
        "section": "net", "priority": "optional", "maintainer": MAINTAINER, "description": DESCRIPTION,
        "mtime": _time(),
        "contents": contents, **CONTROL[packager],
        "scripts": {name: str(SCRIPTS / f"{name}.sh") for name in ("postinstall", "preremove", "postremove")},
        # Debian 12's lintian cannot read zstd in a deb, and nfpm's xz takes minutes.
        "deb": {"compression": "gzip"}, "rpm": {"compression": "zstd", "summary": SUMMARY},
    }  # fmt: skip
    recipe = root.parent / f"{packager}.json"
    recipe.write_text(json.dumps(config, indent=1))
    environment = {"SOURCE_DATE_EPOCH": str(epoch())}
    run(nfpm(), "package", "--config", recipe, "--packager", packager, "--target", out, env=environment)
    return out


def tarball(root: Path, folder: str, out: Path) -> Path:
    """Makes `out` with the tree below `folder`. The same tree gives the same bytes."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime = epoch()
        return None if "/share/lintian" in member.name else member

    with (
        out.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=epoch()) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        archive.add(root, folder, filter=plain)
    return out


def checksums(files: list[Path], out: Path) -> None:
    """Writes a file for `sha256sum --check`."""
    lines = []
    for path in sorted(files):
        with path.open("rb") as content:
            lines.append(f"{hashlib.file_digest(content, 'sha256').hexdigest()}  {path.name}\n")
    out.write_text("".join(lines))


def _time() -> str:
    return datetime.fromtimestamp(epoch(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
