"""An edge on loopback that makes images smaller, and its program, which tests and benches kill."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.host.artifacts import built
from harness.host.ports import free_ports
from harness.host.waiting import wait_for

from .pep import Pep, write_config


@dataclass
class ImageBox:
    """A running edge with a slow link."""

    pep: Pep
    http: int
    image_metrics: int

    def program(self) -> int | None:
        """Returns the process of the program that recodes."""
        return json.loads((self.pep.state / "run.json").read_text())["images"]["pid"]

    def kill_program(self) -> None:
        """Kills the program, and waits until another process has its job."""
        pid = self.program()
        assert pid
        os.kill(pid, signal.SIGKILL)
        wait_for("another process", lambda: self.program() not in (pid, None))


@contextmanager
def image_box(folder: Path, resolver: str, origins: Mapping[str, str], **images: Any) -> Iterator[ImageBox]:
    """Runs the edge. `origins` has the address and port of each host. `images` are keys of `page.images`."""
    for name in ("longhaul", "longhaul-images", "longhaul-objects", "coredns", "envoy"):
        built(name)
    http, dns, metrics, image_metrics = free_ports(4)
    config = {
        "role": "edge",
        "link": {"rtt": "300ms", "down": "384kbit", "up": "64kbit"},
        "proxy": {"addresses": ["127.0.0.1"]},
        "listen": {
            "http": f"127.0.0.1:{http}", "tls": "off", "dns": f"127.0.0.1:{dns}",
            "metrics": f"127.0.0.1:{metrics}", "status": "off", "image_metrics": f"127.0.0.1:{image_metrics}",
            "intercept": "none",
        },
        "upstream": {"resolvers": [resolver], "map": dict(origins)},
        "page": {"images": {"quality": 75, **images}},
        "cache": {"dir": str(folder / "cache"), "size": "64mib"},
    }  # fmt: skip
    with Pep(write_config(folder, config), folder) as pep:
        yield ImageBox(pep, http, image_metrics)
