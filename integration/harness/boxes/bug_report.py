"""A bug report of a running box, and the search for secrets in it."""

from __future__ import annotations

import re
import socket
import stat
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.host.artifacts import built
from harness.net.namespaces import Namespace

from .pep import Pep

ADDRESSES = re.compile(r"(?<![\d.])(?:192\.0\.2|198\.51\.100|203\.0\.113)\.\d+")
"""The addresses of the beds: clients, boxes, origins."""
NAMES = re.compile(r"(?<![\w-])(?!site-\d+\.example)[\w-]+(?:\\*\.|\[\.\])(?:test|org|net|es|example)\b", re.IGNORECASE)
"""The names of the beds. A regular expression may escape a dot."""
KEYS = re.compile(r"PRIVATE KEY|BEGIN CERTIFICATE|[A-Za-z0-9+/]{60,}={0,2}")


def bug_report(pep: Pep, place: Namespace, folder: Path) -> dict[str, str]:
    """Writes the report of a box as its operator does, asserts that only its owner may read it, and returns its
    texts."""
    out = folder / f"report-{pep.config.parent.name}.tar.gz"
    out.unlink(missing_ok=True)
    place.run(built("longhaul"), "bugreport", pep.config, "--state", pep.state, "--out", out)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    with tarfile.open(out) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        assert all(member.mode == 0o600 for member in members)
        texts = {member.name.partition("/")[2]: archive.extractfile(member) for member in members}
        return {name: text.read().decode() for name, text in texts.items() if text}


def secrets(texts: Mapping[str, str], names: Iterable[str] = ()) -> list[str]:
    """Returns every key, address and name in the texts and in the names of their files, with its place. `names` are
    words that no pattern finds."""
    words = [re.escape(name) for name in [socket.gethostname(), *names]]
    known = re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)
    found = []
    for place, text in {**texts, "names": "\n".join(texts)}.items():
        for pattern in (ADDRESSES, NAMES, KEYS, known):
            found += [f"{place}: {match.group()}" for match in pattern.finditer(text)]
    return found
