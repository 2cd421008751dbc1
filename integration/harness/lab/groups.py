"""Groups of clients in the bed of neighbours, and what the remote says of them."""

from __future__ import annotations

import json
import re
from typing import Any

from harness.boxes.pep import Pep
from harness.host.waiting import wait_for

from .neighbours import BULK, CLIENTS, SERVERS, NeighbourBed

POOLS = ("pipe", "warm")
"""The clusters of connections to the ground."""
NO_CLIENT = "no client"
"""The account of bytes that crossed the link for no client."""


def group(name: str, *clients: int, **keys: Any) -> dict[str, Any]:
    """An entry of `clients`. The clients are numbers of `CLIENTS`."""
    return {"name": name, "ranges": [CLIENTS[number] for number in clients], **keys}


def accounts(remote: Pep) -> dict[str, dict[str, Any]]:
    """The accounts of a running remote, by the name of the group."""
    report = json.loads((remote.state / "run.json").read_text())
    return {one["name"]: one for one in report["groups"]}


def used(remote: Pep) -> dict[str, int]:
    """The bytes of each account since the start of the run, in both directions."""
    return {name: one["since_start"]["down"] + one["since_start"]["up"] for name, one in accounts(remote).items()}


def crossed(remote: Pep) -> float:
    """The bytes of both directions on connections to the ground. Streams of the pipe count with it alone."""
    metrics = remote.metrics()
    names = [name for name in metrics if "upstream_cx_rx_bytes_total" in name or "upstream_cx_tx_bytes_total" in name]
    own = [pool for pool in POOLS if f'envoy_cluster_ssl_handshake{{envoy_cluster_name="{pool}"}}' in metrics]
    return sum(metrics[name] for name in names if any(f'envoy_cluster_name="{pool}"' in name for pool in own))


def until_settled(remote: Pep) -> dict[str, int]:
    """Waits until the accounts have the last lines of Envoy. Returns the bytes of each account."""
    last: dict[str, int] = {}

    def same() -> bool:
        nonlocal last
        before, last = last, used(remote)
        # Health checks go on.
        return all(last.get(name) == count for name, count in before.items() if name != NO_CLIENT) and bool(before)

    # Longer than the report takes, and the lines of a stream that is under way. Bytes of no client follow as late.
    wait_for("the accounts", same, timeout_s=120, interval_s=32)
    return last


def until_weighed(bed: NeighbourBed, *weights: int) -> None:
    """Waits until both ends have files with these weights in tenths, and no other."""
    wished = {10, *weights}

    def there() -> bool:
        ends = ((bed.running.remote, "share_bytes"), (bed.running.ground, "share"))
        return all(weights_in(pep, place) == wished for pep, place in ends)

    wait_for("the weights at both ends", there, timeout_s=60, interval_s=0.2)


def weights_in(pep: Pep, place: str) -> set[int]:
    """The weights in a file of shares. Empty if there is none."""
    files = pep.state / "rendered" / "ecds"
    if (native := files / "link-share.yaml").exists():
        # Clients with the usual weight are not listed.
        return {10} | {int(found) for found in re.findall(r'\\"tenths\\":(\d+)', native.read_text())}
    file = files / f"{place}.yaml"
    text = file.read_text() if file.exists() else ""
    return {int(found) for found in re.findall(r"default_tenant_config: \{ weight: (\d+) \}", text)}


def bulk(client: int, streams: int, seconds: float, skip_s: float, **keys: Any) -> dict[str, Any]:
    """A job of a client: downloads or uploads for some seconds."""
    job = {"do": "bulk", "host": BULK, "to": SERVERS[BULK], "from": CLIENTS[client], "streams": streams, "tls": False}
    return job | {"seconds": seconds, "skip_s": skip_s} | keys
