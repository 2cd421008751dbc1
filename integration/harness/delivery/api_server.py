"""A real API server of Kubernetes with Debian's etcd, on loopback."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from harness.host.artifacts import tool
from harness.host.ports import free_ports
from harness.host.processes import Child
from harness.host.waiting import wait_for

from .chart import Object, program

RESTRICTED = "restricted"
"""The namespace with this level of Pod Security."""
TOKEN = "tests"
"""Of a server on loopback, for the time of a test."""


@dataclass(frozen=True)
class Api:
    """A running API server."""

    port: int
    folder: Path

    def kubectl(self, *arguments: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
        """Runs kubectl against it."""
        line = [
            program("kubectl"), f"--server=https://127.0.0.1:{self.port}", f"--token={TOKEN}",
            f"--certificate-authority={self.folder}/certificates/apiserver.crt", *arguments,
        ]  # fmt: skip
        return subprocess.run(
            list(map(str, line)), input=text, capture_output=True, text=True, check=False, timeout=60,
            env={"HOME": str(self.folder), "PATH": "/usr/bin:/bin"},
        )  # fmt: skip

    def create(self, objects: Iterable[Object], namespace: str) -> subprocess.CompletedProcess[str]:
        """Lets the server judge objects as if they were created. Nothing is stored."""
        return self.kubectl(
            "create", f"--namespace={namespace}", "--dry-run=server", "--validate=strict", "--filename=-",
            text="\n---\n".join(map(json.dumps, objects)),
        )  # fmt: skip


def signing_key(path: Path) -> Path:
    """Writes a key for the tokens of service accounts."""
    key = ec.generate_private_key(ec.SECP256R1())
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    return path


@contextmanager
def running(folder: Path) -> Iterator[Api]:
    """An API server that knows cert-manager's and the Prometheus operator's kinds. It has the namespaces `restricted`
    and `privileged`, named after their levels of Pod Security."""
    clients, peers, port = free_ports(3)
    store = f"http://127.0.0.1:{clients}"
    etcd = [
        tool("etcd/usr/bin/etcd", "test-k8s"), f"--data-dir={folder}/etcd", f"--listen-client-urls={store}",
        f"--advertise-client-urls={store}", f"--listen-peer-urls=http://127.0.0.1:{peers}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{peers}",
        f"--initial-cluster=default=http://127.0.0.1:{peers}", "--unsafe-no-fsync",
    ]  # fmt: skip
    key = signing_key(folder / "accounts.key")
    (folder / "tokens.csv").write_text(f"{TOKEN},tests,tests,system:masters\n")
    server = [
        tool("kube-apiserver-*", "test-k8s"), f"--etcd-servers={store}", "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--advertise-address=127.0.0.1", "--service-cluster-ip-range=10.96.0.0/16",
        f"--cert-dir={folder}/certificates", f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=RBAC",
        f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
        "--service-account-issuer=https://kubernetes.default.svc", "--disable-admission-plugins=ServiceAccount",
        "--endpoint-reconciler-type=none",
    ]  # fmt: skip
    with Child(etcd, folder / "etcd.log"), Child(server, folder / "apiserver.log") as child:
        api = Api(port, folder)

        def ready() -> bool:
            assert child.process.poll() is None, child.output()[-2000:]
            return api.kubectl("get", "--raw", "/readyz").stdout == "ok"

        wait_for("the API server", ready, timeout_s=120, interval_s=0.5)
        for level in (RESTRICTED, "privileged"):
            labels = {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "warn")}
            metadata = {"name": level, "labels": labels}
            made = api.kubectl(
                "create",
                "--filename=-",
                text=json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}),
            )
            assert made.returncode == 0, made.stderr
        definitions = tool("crds", "test-k8s")
        made = api.kubectl("create", "--filename", definitions)
        assert made.returncode == 0, made.stderr
        made = api.kubectl("wait", "--for=condition=Established", "--filename", definitions)
        assert made.returncode == 0, made.stderr
        yield api
