"""`python3 deploy/package/image.py`: both targets of the container image as OCI archives. It needs root."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from project import REPOSITORY, SUMMARY, TARGET, Failed, commit, epoch, native, run, version

HERE = REPOSITORY / "deploy" / "image"
WORK = TARGET / "image"
BASE = "localhost/longhaul-base"
TARGETS = ("plain", "host")
DAY_S = 86_400
BASE_PACKAGES = ("usr-is-merged", "ca-certificates", "nftables", "iproute2", "libcap2-bin")
DOCUMENTATION = ("doc", "man", "locale", "info")


@dataclass(frozen=True)
class Store:
    """Buildah's images in their own folder, so that a build does not touch the machine's images."""

    folder: Path = WORK / "storage"

    def buildah(self, *arguments: str | Path) -> str:
        """Runs buildah on it. `vfs` works on every file system, `chroot` in every container."""
        where = ("--root", self.folder / "root", "--runroot", self.folder / "run", "--storage-driver", "vfs")
        return run("buildah", *where, *arguments, env={"BUILDAH_ISOLATION": "chroot"})

    def size(self, image: str) -> int:
        """Returns the bytes of all layers, decompressed."""
        layers = json.loads(self.buildah("inspect", "--type", "image", image))["OCIv1"]["rootfs"]["diff_ids"]
        stored = json.loads((self.folder / "root" / "vfs-layers" / "layers.json").read_text())
        sizes = {one["diff-digest"]: one["diff-size"] for one in stored if "diff-digest" in one}
        return sum(sizes[layer] for layer in layers)


def base_tarball() -> Path:
    """Makes Debian 12 without documentation. It is at most a day old, so that an image has the current fixes."""
    path = WORK / "base.tar"
    if path.exists() and time.time() - path.stat().st_mtime < DAY_S:
        return path
    if os.geteuid() != 0:
        raise Failed("the base of the image is made by mmdebstrap, which needs root here")
    WORK.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".fresh.tar")
    left_out = [f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in DOCUMENTATION]
    run(
        "mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(BASE_PACKAGES)}",
        # Without this hook apt installs usrmerge, and with it 47 MB of perl.
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        *left_out, "--dpkgopt=path-include=/usr/share/doc/*/copyright", '--aptopt=Acquire::Languages "none"',
        "bookworm", fresh, env={"SOURCE_DATE_EPOCH": str(epoch())},
    )  # fmt: skip
    return fresh.rename(path)


def build(tree: Path, store: Store, base: str = BASE) -> dict[str, str]:
    """Builds both targets from a package's tree. Returns the image's name by target. Another base than our own is
    pulled, unless the store has it."""
    context = WORK / "context"
    shutil.rmtree(context, ignore_errors=True)
    for folder in ("bin", "lib/longhaul", "share/doc/longhaul"):
        shutil.copytree(tree / "usr" / folder, context / "usr" / folder, symlinks=True)
    shutil.copy(HERE / ".containerignore", context)
    if base == BASE:
        _import_base(store)
    labels = {
        "title": "Longhaul", "description": SUMMARY, "version": version(), "revision": commit(),
        "licenses": "Apache-2.0",
    }  # fmt: skip
    names = {}
    for target in TARGETS:
        names[target] = f"localhost/longhaul:{version()}{'' if target == 'plain' else f'-{target}'}"
        store.buildah(
            "bud", "--quiet", "--pull-never" if base == BASE else "--pull=false", "--network", "host",
            "--format", "oci", "--target", target, "--build-arg", f"BASE={base}", "--timestamp", str(epoch()),
            *(f"--label=org.opencontainers.image.{key}={value}" for key, value in labels.items()),
            "--file", HERE / "Containerfile", "--tag", names[target], context,
        )  # fmt: skip
    return names


def _import_base(store: Store) -> None:
    tarball = base_tarball()
    mark = store.folder / "base"
    stamp = str(tarball.stat().st_mtime_ns)
    if mark.exists() and mark.read_text() == stamp:
        return
    shutil.rmtree(store.folder, ignore_errors=True)
    store.folder.mkdir(parents=True)
    container = store.buildah("from", "scratch").strip()
    store.buildah("add", "--quiet", container, tarball, "/")
    store.buildah("commit", "--quiet", "--rm", "--format", "oci", container, BASE)
    mark.write_text(stamp)


def main() -> int:
    """Builds, exports and prints sizes. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, default=TARGET / "package" / "work" / native() / "tree")
    parser.add_argument("--no-archives", action="store_true", help="leave the images in the store")
    parser.add_argument("--base", action="store_true", help="only make the base, and print where it is")
    parser.add_argument("--from", dest="image", default=BASE, help="the image to build on, instead of a fresh Debian")
    arguments = parser.parse_args()
    try:
        if arguments.base:
            print(base_tarball())
            return 0
        store = Store()
        for target, image in build(arguments.tree, store, arguments.image).items():
            print(f"{image}: {store.size(image) / 1e6:.0f} MB")
            if not arguments.no_archives:
                archive = WORK / f"longhaul_{version()}_{native()}_{target}.oci.tar"
                archive.unlink(missing_ok=True)
                store.buildah("push", "--quiet", image, f"oci-archive:{archive}:{image}")
                print(f"{archive}: {archive.stat().st_size / 1e6:.0f} MB")
    except Failed as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
