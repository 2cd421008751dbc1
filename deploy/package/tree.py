"""The files of one package, in their places on the machine."""

from __future__ import annotations

import gzip
import os
import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from project import LIBRARIES, MAINTAINER, PROGRAMS, REPOSITORY, WASM_FILTERS, epoch, run, version

HERE = Path(__file__).resolve().parent
DOC = "usr/share/doc/longhaul"
CONFIG = "etc/longhaul/longhaul.yaml"
DOCUMENTS = {
    "README.md": "README.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "OPERATING.md": "deploy/OPERATING.md",
    "CONFIGURATION.md": "envoy-config/README.md",
    "PAIR.md": "envoy-config/PAIR.md",
    "METRICS.md": "envoy-config/METRICS.md",
    "FAULTS.md": "envoy-config/FAULTS.md",
    "SECURITY.md": "SECURITY.md",
}
# Pages of the guide, without those that include a document above.
DOCUMENTS |= {
    page.name: page.relative_to(REPOSITORY).as_posix()
    for page in sorted((REPOSITORY / "docs" / "src").glob("*.md"))
    if page.name != "SUMMARY.md" and "{{#include" not in page.read_text()
}
COMPLETIONS = {
    "longhaul.bash": "usr/share/bash-completion/completions/longhaul",
    "_longhaul": "usr/share/zsh/vendor-completions/_longhaul",
    "longhaul.fish": "usr/share/fish/vendor_completions.d/longhaul.fish",
}


@dataclass(frozen=True)
class Tree:
    """A folder that looks like the root of a machine with nothing but the package."""

    root: Path

    def build(self, programs: Path, native_longhaul: Path, notices: str, bill: str) -> None:
        """Builds the whole tree again. `native_longhaul` runs here and writes man pages and completions."""
        shutil.rmtree(self.root, ignore_errors=True)
        for name in PROGRAMS:
            self._copy(programs / name, f"usr/lib/longhaul/{name}", 0o755)
        for name in (*WASM_FILTERS, *LIBRARIES):
            self._copy(programs / name, f"usr/lib/longhaul/{name}")
        (self.root / "usr/bin").mkdir(parents=True)
        (self.root / "usr/bin/longhaul").symlink_to("../lib/longhaul/longhaul")
        for unit in sorted((REPOSITORY / "deploy" / "systemd").glob("*.service")):
            self._copy(unit, f"lib/systemd/system/{unit.name}")
        for folder in ("sysctl", "modules-load"):
            for settings in sorted((REPOSITORY / "deploy" / folder).glob("*.conf")):
                self._copy(settings, f"usr/lib/{folder}.d/{settings.name}")
        for dashboard in sorted((REPOSITORY / "deploy" / "dashboards").glob("*")):
            self._copy(dashboard, f"usr/share/longhaul/dashboards/{dashboard.name}")
        self._copy(HERE / "longhaul.yaml", CONFIG)
        self._generated(native_longhaul)
        self._documents(notices, bill)
        self._date()

    def _generated(self, longhaul: Path) -> None:
        made = self.root.parent / "generated"
        shutil.rmtree(made, ignore_errors=True)
        for what in ("man", "completions"):
            (made / what).mkdir(parents=True)
            run(longhaul, "generate", what, "--out", made / what)
        for page in sorted((made / "man").iterdir()):
            section = page.suffix.removeprefix(".")
            self._write(f"usr/share/man/man{section}/{page.name}.gz", gzip.compress(page.read_bytes(), mtime=0))
        for name, place in COMPLETIONS.items():
            self._copy(made / "completions" / name, place)

    def _documents(self, notices: str, bill: str) -> None:
        for name, source in DOCUMENTS.items():
            self._write(f"{DOC}/{name}", flattened((REPOSITORY / source).read_text()).encode())
        self._write(f"{DOC}/copyright", copyright_file().encode())
        self._write(f"{DOC}/changelog.gz", gzip.compress(debian_changelog().encode(), mtime=0))
        self._write(f"{DOC}/THIRD-PARTY.txt.gz", gzip.compress(notices.encode(), mtime=0))
        self._write(f"{DOC}/longhaul.cdx.json.gz", gzip.compress(bill.encode(), mtime=0))
        self._copy(HERE / "lintian-overrides", "usr/share/lintian/overrides/longhaul")

    def _copy(self, source: Path, place: str, mode: int = 0o644) -> None:
        self._write(place, source.read_bytes(), mode)

    def _write(self, place: str, content: bytes, mode: int = 0o644) -> None:
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)

    def _date(self) -> None:
        """Sets the modes of folders and all times, so that one commit gives one package."""
        for path in [self.root, *self.root.rglob("*")]:
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)
            os.utime(path, (epoch(), epoch()), follow_symlinks=False)


def flattened(text: str) -> str:
    """Adapts links between documents, which lie in one folder once installed. Other links and pictures lose their
    target."""
    shipped = {source: name for name, source in DOCUMENTS.items()}
    by_name = {Path(source).name: name for source, name in shipped.items() if Path(source).name != "README.md"}

    def link(match: re.Match[str]) -> str:
        label, target, fragment = match[1], match[2], match[3] or ""
        if "://" in target:
            return match[0]
        path = re.sub(r"^(?:\.\./)+", "", target)
        name = shipped.get(path) or by_name.get(Path(path).name)
        return f"[{label}]({name}{fragment})" if name else label

    return re.sub(r"!?\[([^\]]+)\]\(([^)#\s]+)(#[^)]*)?\)", link, text)


def debian_changelog() -> str:
    """Returns the changelog that dpkg's tools require. CHANGELOG.md is the one for readers."""
    date = datetime.fromtimestamp(epoch(), UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
    return (
        f"longhaul ({version()}) stable; urgency=medium\n\n"
        f"  * Release {version()}: see CHANGELOG.md.\n\n -- {MAINTAINER}  {date}\n"
    )


def copyright_file() -> str:
    """Returns the copyright file in Debian's format."""
    return COPYRIGHT.format(year=datetime.fromtimestamp(epoch(), UTC).year)


COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: longhaul
Upstream-Contact: The Longhaul authors
Comment: The programs contain works of others. THIRD-PARTY.txt.gz in this folder has their licences. Those of
 the libraries inside Envoy are listed in Envoy's source, bazel/repository_locations.bzl.

Files: *
Copyright: {year} The Longhaul authors
License: Apache-2.0

Files: usr/lib/longhaul/envoy
Copyright: {year} The Envoy Project authors
License: Apache-2.0

Files: usr/lib/longhaul/coredns
Copyright: {year} The CoreDNS authors and contributors, the Longhaul authors
License: Apache-2.0

License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.
"""
