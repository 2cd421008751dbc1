"""`python crds.py FOLDER`: fetches definitions of other projects' kinds from the Go module proxy, one file each."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ENVOY_GATEWAY = "charts/gateway-helm/charts/crds/crds/generated/gateway.envoyproxy.io_{}.yaml"
CERT_MANAGER = "deploy/crds/cert-manager.io_certificates.yaml"
OPERATOR = "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml"
KINDS = (
    # the kind, its module, the file there
    ("certificates.cert-manager.io", "github.com/cert-manager/cert-manager@v1.21.2", CERT_MANAGER),
    ("podmonitors.monitoring.coreos.com", "github.com/prometheus-operator/prometheus-operator@v0.85.0", OPERATOR),
    *(
        (f"{kind}.gateway.envoyproxy.io", "github.com/envoyproxy/gateway@v1.9.1", ENVOY_GATEWAY.format(kind))
        for kind in ("backendtrafficpolicies", "envoyextensionpolicies", "envoypatchpolicies", "envoyproxies")
    ),
    ("wasmplugins.extensions.istio.io", "istio.io/api@v1.31.1", "kubernetes/customresourcedefinitions.gen.yaml"),
)  # fmt: skip


def module(name: str) -> Path:
    """Downloads a module. Returns its folder."""
    done = subprocess.run(["go", "mod", "download", "-json", name], capture_output=True, text=True, check=True, cwd="/")
    return Path(json.loads(done.stdout)["Dir"])


def definition(documents: str, kind: str) -> str:
    """Returns the definition of a kind from a file of several."""
    [found] = [
        one
        for one in re.split(r"^---\n", documents, flags=re.MULTILINE)
        if re.search(rf"^  name: {re.escape(kind)}$", one, re.MULTILINE)
    ]
    return found


def main() -> int:
    """Returns the exit code."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for kind, name, path in KINDS:
        (folder / f"{kind}.yaml").write_text(definition((module(name) / path).read_text(), kind))
    return 0


if __name__ == "__main__":
    sys.exit(main())
