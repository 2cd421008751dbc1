"""The packet rules that an operator loads on a gateway, loaded in a namespace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.host.artifacts import REPOSITORY, built

from .namespaces import Namespace
from .topology import CLIENT_DEVICE

RULES = REPOSITORY / "integration" / "gateway" / "redirect.nft"


@contextmanager
def redirected(gateway: Namespace, folder: Path, **definitions: str) -> Iterator[None]:
    """Loads the rules. `definitions` replace those of the file, as an operator edits them: `http="8080"`."""
    text = RULES.read_text()
    for name, value in definitions.items():
        text, found = re.subn(rf"^(define {name} = )\S+", rf"\g<1>{value}", text, flags=re.MULTILINE)
        assert found == 1, f"{RULES} defines no {name}"
    rules = folder / "redirect.nft"
    rules.write_text(text)
    gateway.run("nft", "-f", rules)
    try:
        yield
    finally:
        gateway.run("nft", "delete", "table", "inet", "longhaul")


@contextmanager
def applied(gateway: Namespace, config: Path, folder: Path, device: str = CLIENT_DEVICE) -> Iterator[None]:
    """Applies what `longhaul host` does for the configuration, with its record in `folder`. `device` is the one towards
    the clients."""
    record = ["--record", folder / "host.json"]
    gateway.run(built("longhaul"), "host", config, "--clients", device, "--apply", *record)
    try:
        yield
    finally:
        gateway.run(built("longhaul"), "host", "--undo", *record)
