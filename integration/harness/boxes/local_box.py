"""An edge with all of its programs, on a machine that has only loopback, in folders that every user may enter."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.clients.commands import Curl
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.net.namespaces import Namespace
from harness.net.topology import PROXY

from .local_users import Surfaces, surfaces
from .pep import PROXY_NAME, Pep, gateway_config, write_config


@dataclass(frozen=True)
class LocalBox:
    """The running box."""

    pep: Pep
    namespace: Namespace
    folder: Path

    def surfaces(self) -> Surfaces:
        """Returns what it offers to users of its machine."""
        return surfaces(self.pep.child.process.pid, self.pep.state, self.folder / "cache", self.folder / "access.jsonl")


@contextmanager
def local_box(program: Path | None = None) -> Iterator[LocalBox]:
    """Starts the box. `program` is the `longhaul` of another version."""
    with tempfile.TemporaryDirectory(prefix="longhaul-local-users-") as path, Namespace("box") as namespace:
        folder = Path(path)
        # A closed folder would hide files and sockets with a wrong mode.
        folder.chmod(0o755)
        namespace.ip("address", "add", f"{PROXY}/32", "dev", "lo")
        certificate = Authority(folder).issue(PROXY_NAME).as_dict()
        config = gateway_config(folder, certificate, page={"images": {"quality": 75}})
        config["listen"] |= {"intercept": "none", "health": "127.0.0.1:9902"}
        with Pep(write_config(folder, config, ["example.org"]), folder, namespace, program=program) as pep:
            Curl(folder, namespace).get(f"http://{PROXY}/example.org/")
            wait_for("the access log", (folder / "access.jsonl").exists)
            yield LocalBox(pep, namespace, folder)
