"""Longhaul as a pair: `remote` in one namespace, `ground` in another, each started as its operator starts it."""

from __future__ import annotations

import json
import shutil
import ssl
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.host.artifacts import built
from harness.host.waiting import wait_for
from harness.net.authority import KeyFiles
from harness.net.namespaces import Namespace
from harness.net.topology import RESOLVER

from .pep import STEERED, Pep, command, parse_metrics, write_config

REMOTE_NAME = "ship.example"
GROUND_NAME = "ground.example.org"
"""The name of a ground that is found by name. The resolver of the bed must know it. QUIC always uses it."""
PIPE_PORT = 8443
BYTES_ALPN = "longhaul-bytes"
"""The protocol of connections that carry clients' bytes."""
FAIR = {"fill": "auto"}
"""The part of `link` that `pair init` writes beside the rates: an equal share for each client."""
REDIRECTS = (
    *(f"tcp dport {port} redirect to :{port}" for port in (80, 443, 53)),
    "udp dport 53 redirect to :53",
)
"""Packet rules by which the remote's host takes the traffic of clients to any address."""


def tls_of_remote(shown: KeyFiles, alpn: str, ca: Path | None = None) -> ssl.SSLContext:
    """Returns the TLS of a remote that shows this certificate. Without `ca`, it accepts any ground."""
    context = ssl.create_default_context(cafile=ca)
    if ca is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(shown.cert, shown.key)
    context.set_alpn_protocols([alpn])
    return context


@dataclass(frozen=True)
class Ends:
    """The namespaces and the addresses of the two ends."""

    near: Namespace
    near_address: str
    """The address where clients reach the remote."""
    far: Namespace
    far_address: str
    """The address where the remote reaches the ground."""


@dataclass
class Pair:
    """Both ends, running."""

    remote: Pep
    ground: Pep
    identity: dict[str, str]
    """The remote's files: cert, key and ca."""

    def connections(self, pool: str) -> dict[str, float]:
        """Connections of the remote's pool `pipe` or `warm`: `active`, `total` and `connect_fail` so far, `unused` by
        any client, and `opening`. The handshake of those `opening` is not done. Envoy counts a connection from its
        first packet. Warm streams count as connections, which have no handshake."""
        metrics = self.remote.metrics()
        label = f'{{envoy_cluster_name="{pool}"}}'
        found = {
            kind: metrics[f"envoy_cluster_upstream_cx_{kind}{label}"] for kind in ("active", "total", "connect_fail")
        }
        begun = found["total"] - found["connect_fail"]
        done = metrics.get(f"envoy_cluster_ssl_handshake{label}", begun)
        unused = found["active"] - metrics[f"envoy_cluster_upstream_rq_active{label}"]
        return found | {"unused": unused, "opening": begun - done}

    def until_piped(self) -> None:
        """Waits until there is a pipe."""
        wait_for("the pipe", lambda: self.connections("pipe")["active"] >= 1, timeout_s=60, interval_s=0.2)

    def until_names_come(self) -> None:
        """Waits until the ground may send names unasked. It does so on a request over the pipe, which stays open."""

        def open_streams() -> float:
            page = parse_metrics(self.remote.page("http://127.0.0.1:9153/metrics"))
            return page.get("coredns_remember_pushed_stream", 0)

        wait_for("the stream of names", lambda: open_streams() == 1, timeout_s=90, interval_s=0.2)

    def until_names_cross(self) -> None:
        """Waits until both ends agree that the remote names its clients to the ground."""
        until_names_cross(self.remote)

    @contextmanager
    def without_ground(self) -> Iterator[None]:
        """Stops the ground for as long as the context lasts."""
        self.ground.child.stop()
        try:
            yield
        finally:
            # The context that started the pair stops this one.
            self.ground.__enter__()

    def checks(self) -> dict[str, float]:
        """The remote's health checks of the ground so far: `attempt` and `failure`."""
        metrics = self.remote.metrics()
        return {
            kind: metrics[f'envoy_cluster_health_check_{kind}{{envoy_cluster_name="pipe"}}']
            for kind in ("attempt", "failure")
        }

    def packed(self) -> dict[str, float]:
        """Bytes of the request headers that the remote has compressed so far: before (`plain`) and after (`packed`)."""
        metrics = self.remote.metrics()
        total = {
            key: sum(value for name, value in metrics.items() if f"header_compression_{key}_bytes_total" in name)
            for key in ("plain", "packed")
        }
        return total


def names_cross(remote: Pep) -> bool:
    """Returns true if a remote names its clients to its ground."""
    entries = json.loads(remote.admin("/runtime"))["entries"]
    return entries.get("longhaul.names_clients", {}).get("final_value") == "100"


def until_names_cross(remote: Pep) -> None:
    """Waits until a remote and its ground agree that the remote names its clients."""
    wait_for("the agreement about names of clients", lambda: names_cross(remote), timeout_s=60, interval_s=0.2)


def known_to_older(link: dict[str, str]) -> dict[str, str]:
    """Returns the section `link` for an earlier version, which refuses keys that it does not know."""
    return {key: value for key, value in link.items() if key not in FAIR}


def identities(folder: Path, ground_host: str) -> tuple[dict[str, str], dict[str, str]]:
    """Returns cert, key and ca of the remote and of the ground, made as an operator makes them. The ground's
    certificate is for the host that the remote dials."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return identity_of(REMOTE_NAME, folder, ground_host), identity_of("ground", folder, ground_host)


def identity_of(end: str, folder: Path, ground_host: str) -> dict[str, str]:
    """Returns cert, key and ca of the ground or of a remote, which are made if they do not exist."""
    home = folder / "pair"
    if not (home / end).exists():
        remote = REMOTE_NAME if end == "ground" else end
        done = command("pair", "init", remote, f"{ground_host}:{PIPE_PORT}", "--dir", home)
        assert done.returncode == 0, done.stderr
    # All ends share one file of authorities, so that a test changes all at once.
    files = {key: str(home / end / f"{end}.{suffix}") for key, suffix in (("cert", "pem"), ("key", "key"))}
    return files | {"ca": str(home / "pair-ca.pem")}


def ground_host(ends: Ends, *, transport: str = "h2", **_: Any) -> str:
    """The name or the address by which the remote knows the ground."""
    return GROUND_NAME if transport == "h3" else ends.far_address


def remote_config(ends: Ends, identity: dict[str, str], link: dict[str, str], **split: Any) -> dict:
    """longhaul.yaml of the end beside the clients."""
    host = ground_host(ends, **split)
    # Other remotes send no query to a resolver.
    asks = split.get("when_down") == "direct" or host == GROUND_NAME
    upstream = {"upstream": {"resolvers": [RESOLVER]}} if asks else {}
    return {
        "role": "remote",
        "link": link,
        "proxy": {"addresses": [ends.near_address]},
        "listen": {
            "http": "0.0.0.0:80", "tls": "0.0.0.0:443", "dns": "0.0.0.0:53",
            "metrics": "127.0.0.1:9153", "intercept": "redirect",
        },
        "dns": {"domains": [STEERED]},
        **upstream,
        "split": {"peer": f"{host}:{PIPE_PORT}", **identity, **split},
    }  # fmt: skip


def ground_config(
    folder: Path,
    ends: Ends,
    identity: dict[str, str],
    link: dict[str, str],
    *,
    transport: str = "h2",
    ground_packs: bool = True,
    peers: Sequence[str] = (REMOTE_NAME,),
    **_: Any,
) -> dict:
    """longhaul.yaml of the end on the wired side. It takes the keys of `split` that both ends share, and
    the names of the remotes that it accepts."""
    return {
        "role": "ground",
        "link": link,
        "upstream": {"resolvers": [RESOLVER]},
        "cache": {"dir": str(folder / "cache"), "size": "64mib"},
        "split": {
            "listen": f"{ends.far_address}:{PIPE_PORT}",
            "peer": list(peers),
            "transport": transport,
            "pack_headers": ground_packs,
            **identity,
        },
    }


@dataclass(frozen=True)
class Files:
    """The files that both ends start with."""

    remote: Path
    ground: Path
    remote_identity: dict[str, str]


def write_pair(
    folder: Path,
    ends: Ends,
    link: dict[str, str],
    *,
    steered: Sequence[str] = (),
    page: dict[str, Any] | None = None,
    compress: dict[str, Any] | None = None,
    near: dict[str, Any] | None = None,
    far: dict[str, Any] | None = None,
    older: Collection[str] = (),
    tcp: str | Sequence[int] | None = None,
    ground_ports: Sequence[int] = (),
    **split: Any,
) -> Files:
    """Writes the files of both ends. The remote resolves the names of `steered` at once. `page` is that section of both
    files. `compress` is that of the ground. `near` has further keys of the remote's file, and `far` of the ground's.
    `split` changes keys of the remote. `ground_packs` is the ground's own `pack_headers`, and `peers` are the names of
    the remotes that it accepts. The roles in `older` run an earlier version, which refuses keys that it does not know.
    `tcp` is `listen.tcp` of the remote, which then serves both families, and `ground_ports` are further ports that the
    ground lists."""
    homes = {role: folder / role for role in ("remote", "ground")}
    for home in homes.values():
        home.mkdir(parents=True, exist_ok=True)
    remote_identity, ground_identity = identities(folder / "identities", ground_host(ends, **split))
    both = {"page": page} if page else {}
    known = known_to_older(link)
    far_link, near_link = (known if role in older else link for role in ("ground", "remote"))
    far_config = ground_config(homes["ground"], ends, ground_identity, far_link, **split) | both
    far_config |= ({"compress": compress} if compress else {}) | (far or {})
    far_config["upstream"] |= {"ports": [80, 443, *ground_ports]} if ground_ports else {}
    for key in ("ground_packs", "peers"):
        split.pop(key, None)
    near_config = remote_config(ends, remote_identity, near_link, **split) | both
    # A list without a name is refused.
    near_config |= {} if steered else {"dns": {}}
    near_config |= {"cache": None} if "remote" in older else {}
    if tcp:
        families = {key: [f"0.0.0.0:{port}", f"[::]:{port}"] for key, port in (("http", 80), ("tls", 443), ("dns", 53))}
        near_config["listen"] |= {**families, "tcp": tcp}
    near_config |= near or {}
    return Files(
        write_config(homes["remote"], near_config, steered), write_config(homes["ground"], far_config), remote_identity
    )


@contextmanager
def running(
    files: Files,
    ends: Ends,
    *,
    trusted: Path | None = None,
    remote_program: Path | None = None,
    ground_program: Path | None = None,
) -> Iterator[Pair]:
    """Runs both ends, each with a `longhaul` of its own if that is given. The ground checks the origins' certificates
    against `trusted`."""
    with (
        Pep(files.ground, files.ground.parent, ends.far, trusted=trusted, program=ground_program) as far,
        Pep(files.remote, files.remote.parent, ends.near, program=remote_program) as near,
    ):
        yield Pair(near, far, files.remote_identity)


@contextmanager
def pair(
    folder: Path,
    ends: Ends,
    link: dict[str, str],
    *,
    trusted: Path | None = None,
    remote_program: Path | None = None,
    ground_program: Path | None = None,
    **changes: Any,
) -> Iterator[Pair]:
    """Runs both ends on files with `changes`, as `write_pair` takes them."""
    programs = {"remote_program": remote_program, "ground_program": ground_program}
    older = [end.removesuffix("_program") for end, one in programs.items() if one not in (None, built("longhaul"))]
    with running(write_pair(folder, ends, link, older=older, **changes), ends, trusted=trusted, **programs) as both:
        yield both
