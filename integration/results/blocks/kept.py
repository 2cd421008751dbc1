"""The results that are kept in the repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "integration" / "results"


def read(path: Path) -> Any:
    """The results of a file, or those of a folder by the names of its files. Raises ValueError if there are none."""
    if path.is_dir():
        return {one.stem: read(one) for one in sorted(path.glob("*.json"))}
    if not path.exists():
        raise ValueError(f"{path.relative_to(ROOT)} is missing: run make experiments, and make goals")
    return json.loads(path.read_text(encoding="utf-8"))
