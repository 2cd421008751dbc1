"""An ACME authority (Pebble) on the Internet of the test bed, and certbot on the gateway."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.host.artifacts import REPOSITORY, Missing
from harness.host.processes import Child
from harness.net.authority import Authority
from harness.net.namespaces import Namespace
from harness.net.topology import INTERNET, RESOLVER

DIRECTORY = f"https://{INTERNET}:14000/dir"


def _pebble() -> Path:
    found = next((REPOSITORY / "target" / "tools").glob("pebble-*"), None)
    if found is None:
        raise Missing("no Pebble in target/tools: `make test-e2e` builds it")
    return found


class Pebble:
    """A running Pebble. It requests challenges on port 80 and looks names up at the resolver of the bed."""

    def __init__(self, folder: Path, namespace: Namespace, authority: Authority) -> None:
        files = authority.issue(INTERNET)
        self._config = folder / "pebble.json"
        self._config.write_text(
            json.dumps(
                {
                    "pebble": {
                        "listenAddress": f"{INTERNET}:14000",
                        "managementListenAddress": f"{INTERNET}:15000",
                        "certificate": str(files.cert),
                        "privateKey": str(files.key),
                        "httpPort": 80,
                        "tlsPort": 443,
                    }
                }
            )
        )
        self._log = folder / "pebble.log"
        self._command = namespace.inside(
            [_pebble(), "-config", self._config, "-strict", "-dnsserver", f"{RESOLVER}:53"]
        )
        self._child: Child | None = None

    def __enter__(self) -> Self:
        # Without random waits, and without nonces that are refused for practice.
        self._child = Child(self._command, self._log, env={"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0"})
        try:
            self._child.wait_for_output("Listening on")
        except BaseException:
            self._child.stop()
            raise
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._child:
            self._child.stop()


@dataclass
class Certbot:
    """certbot on the gateway, with its files below `folder`. `trusted` is the authority of the ACME server itself."""

    folder: Path
    namespace: Namespace
    trusted: Path

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs one of its commands to its end."""
        program = Path(sys.executable).with_name("certbot")
        if not program.exists():
            raise Missing("no certbot in the environment of the tests: `make test-e2e` installs it")
        line = [
            program, *arguments, "--non-interactive", "--server", DIRECTORY, "--config-dir", self.folder / "etc",
            "--work-dir", self.folder / "work", "--logs-dir", self.folder / "log",
        ]  # fmt: skip
        return subprocess.run(
            ["env", f"REQUESTS_CA_BUNDLE={self.trusted}", *self.namespace.inside(line)],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def live(self, name: str) -> dict[str, str]:
        """Returns the files of a certificate as `tls.terminate` names them."""
        live = self.folder / "etc" / "live" / name
        return {"cert": str(live / "fullchain.pem"), "key": str(live / "privkey.pem")}
