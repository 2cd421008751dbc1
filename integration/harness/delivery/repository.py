"""An apt repository of the packages under test: signed by a throwaway key, and published on loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.host.artifacts import REPOSITORY, need_commands
from harness.host.processes import Child
from harness.net.namespaces import Namespace

PROGRAM = REPOSITORY / "deploy" / "package" / "apt_repository.py"
KEYRING, SOURCES = "longhaul.pgp", "longhaul.sources"
PORT = 8099
URL = f"http://127.0.0.1:{PORT}"


class Repository:
    """A folder with packages, and the key that signs it."""

    def __init__(self, folder: Path) -> None:
        need_commands("gpg", "dpkg-scanpackages")
        self.folder = folder / "apt"
        # The socket of gpg's agent stands there, and the path of a socket has at most 107 bytes.
        self._home = Path(tempfile.mkdtemp(prefix="gpg-"))
        self.key = "longhaul-test@example.org"
        self._gpg("--passphrase", "", "--quick-generate-key", self.key, "ed25519", "sign", "1d")

    def add(self, *debs: Path) -> None:
        """Adds packages, as `make apt-repo` does."""
        environment = {**os.environ, "GNUPGHOME": str(self._home)}
        line = [sys.executable, PROGRAM, "--key", self.key, "--out", self.folder, "--url", URL, *debs]
        done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"{PROGRAM.name}: {done.stdout}{done.stderr}")

    def close(self) -> None:
        """Ends the agent of gpg, and removes the key."""
        subprocess.run(
            ["gpgconf", "--kill", "all"], env={**os.environ, "GNUPGHOME": str(self._home)}, check=False, timeout=30
        )
        shutil.rmtree(self._home, ignore_errors=True)

    def _gpg(self, *arguments: str) -> None:
        line: Sequence[str] = ["gpg", "--batch", "--quiet", "--homedir", str(self._home), *arguments]
        subprocess.run(line, check=True, capture_output=True, timeout=60)


@contextmanager
def repository(folder: Path) -> Iterator[Repository]:
    """An empty repository with a key of its own below `folder`."""
    folder.mkdir(exist_ok=True)
    one = Repository(folder)
    try:
        yield one
    finally:
        one.close()


@contextmanager
def published(folder: Path, namespace: Namespace, log: Path) -> Iterator[None]:
    """Serves a folder on loopback of a namespace, as a web server without any configuration does."""
    serve = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(folder), str(PORT)]
    with Child(namespace.inside(serve), log, stop_timeout_s=5) as server:
        server.wait_for_output("Serving HTTP", 30)
        yield
