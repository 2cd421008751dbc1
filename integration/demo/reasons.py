"""Why a name is contacted even with Longhaul: `longhaul explain` knows for the markup, scripts are the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from harness.pep import command

BY_SCRIPT = "asked for by a script while it runs; the page's markup does not have it"


def reasons(config: Path, url: str, page: Path, names: Iterable[str]) -> dict[str, list[str]]:
    """For each name the reasons, in sentences, why objects on it were left where they are."""
    done = command("explain", config, "--url", url, page, "--json")
    if done.returncode != 0:
        raise RuntimeError(f"longhaul explain: {done.stderr}")
    found: dict[str, list[str]] = {name: [] for name in names}
    for one in json.loads(done.stdout)["urls"]:
        host = _host(urljoin(url, one["url"])) if one["url"] else ""
        if one["to"] is None and host in found:
            sentence = f"{one['element']} {one['attribute']}: {one['explanation']}"
            if sentence not in found[host]:
                found[host].append(sentence)
    return {name: sentences or [BY_SCRIPT] for name, sentences in found.items()}


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
