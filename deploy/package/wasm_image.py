"""`python3 deploy/package/wasm_image.py`: the url-rewrite filter as an OCI image for gateways. It needs root."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from project import TARGET, Failed, epoch, version

from image import WORK, Store


def build(filter: Path, archive: Path) -> None:
    """Writes an archive of an image with one layer, in which the filter is `plugin.wasm`: the form that Envoy Gateway
    and Istio read."""
    if not filter.exists():
        raise Failed(f"{filter} is missing: run `make build-filters` first")
    store = Store(WORK / "wasm-storage")
    shutil.rmtree(store.folder, ignore_errors=True)
    store.folder.mkdir(parents=True)
    container = store.buildah("from", "scratch").strip()
    store.buildah("copy", "--quiet", "--chmod", "0644", container, filter, "/plugin.wasm")
    name = f"localhost/longhaul/url-rewrite:{version()}"
    store.buildah("commit", "--quiet", "--rm", "--format", "oci", "--timestamp", str(epoch()), container, name)
    archive.unlink(missing_ok=True)
    store.buildah("push", "--quiet", name, f"oci-archive:{archive}:{name}")
    shutil.rmtree(store.folder)


def main() -> int:
    """Builds it and prints where it is. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dist", type=Path, default=TARGET / "dist", help="the output of `make build`")
    parser.add_argument("--out", type=Path, default=WORK)
    arguments = parser.parse_args()
    archive = arguments.out / f"url-rewrite_{version()}_wasm.oci.tar"
    try:
        build(arguments.dist / "url_rewrite.wasm", archive)
    except Failed as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    print(f"{archive}: {archive.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
