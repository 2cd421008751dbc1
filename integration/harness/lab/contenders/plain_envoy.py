"""Envoy without our filters: one box that splits TCP, and a pair with HTTP/2 between its boxes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from harness.host.artifacts import built
from harness.host.processes import Child
from harness.net.namespaces import Namespace
from harness.net.topology import CLIENT_DEVICE

from ..line import FAR, NEAR_DEVICE
from .base import LinkContender, LinkTrack, intercept, rules, sysctls, wait_for_port
from .longhaul import Edge, route_options

HTTP, TLS, PIPE = 15080, 15443, 15090
TYPE = "type.googleapis.com/envoy."
WINDOW_BYTES = 16 * 1024 * 1024
"""HTTP/2 windows of the pair: never what bounds it."""
ORIGINAL = "x-original-destination"
"""Tells the far box where the client wanted to go. Not for the open Internet: the pair's own pipe carries it."""


class SplitTcp(LinkContender):
    """Every TCP connection ends on the gateway and another goes on to the origin, bytes unseen."""

    def __init__(self, window: bool) -> None:
        self._window = window
        self.name = "split-tcp-window" if window else "split-tcp"
        self.title = "split TCP + window" if window else "split TCP"
        self.about = (
            "Envoy as a plain TCP proxy for ports 80 and 443"
            + (", with the initial window and kernel settings that Longhaul derives from the link." if window else ".")
        )  # fmt: skip

    @contextmanager
    def started(self, track: LinkTrack) -> Iterator[None]:
        """Envoy runs on the gateway, one for both variants."""
        configuration = _bootstrap(
            track.take_port(),
            [_tcp_listener("http", HTTP, "origin"), _tcp_listener("tls", TLS, "origin")],
            [_origin()],
        )
        with ExitStack() as stack:
            if not _runs(track, "split"):
                stack.enter_context(_envoy(track, "split", track.line.gateway, configuration))
            yield

    @contextmanager
    def engaged(self, track: LinkTrack) -> Iterator[None]:
        """Both ports are redirected."""
        with ExitStack() as stack:
            stack.enter_context(rules(track.line.gateway, _redirects(CLIENT_DEVICE)))
            if self._window:
                stack.enter_context(sized_windows(track))
            yield


class Http2Pair(LinkContender):
    """A box at each end of the link; http as requests on one HTTP/2 connection, https as CONNECT streams on it."""

    name = "envoy-pair"
    title = "Envoy pair, HTTP/2"
    about = (
        "An Envoy at each end of the link with one HTTP/2 connection kept between them: http requests travel on "
        "it as such, "
        "other connections as CONNECT streams; initial window sized from the link, none of our filters, DNS untouched."
    )

    @contextmanager
    def started(self, track: LinkTrack) -> Iterator[None]:
        """Both boxes run."""
        far = _bootstrap(track.take_port(), [_pipe_end()], [_origin(by_header=True)])
        near = _bootstrap(track.take_port(), [_requests_listener(), _connect_listener()], [_pipe()])
        with (
            _envoy(track, "pair-far", track.line.gateway, far),
            _envoy(track, "pair-near", track.line.near, near),
        ):
            yield

    @contextmanager
    def engaged(self, track: LinkTrack) -> Iterator[None]:
        """The near box takes both ports."""
        with rules(track.line.near, _redirects(NEAR_DEVICE)), sized_windows(track):
            yield


@contextmanager
def sized_windows(track: LinkTrack) -> Iterator[None]:
    """The routes and settings that Longhaul's edge would have on this link."""
    edge = Edge("window", "", "")
    path = track.folder_of("window") / "longhaul.yaml"
    if not path.exists():
        edge.write_config(track)
    options = route_options(path)
    with (
        sysctls(track.line.gateway, tcp_slow_start_after_idle=0),
        sysctls(track.line.near, tcp_slow_start_after_idle=0),
    ):
        track.line.set_client_route(*options)
        track.line.set_near_route(*options)
        try:
            yield
        finally:
            track.line.set_client_route()
            track.line.set_near_route()


def _runs(track: LinkTrack, name: str) -> bool:
    return (track.folder / name / "envoy.json").exists()


@contextmanager
def _envoy(track: LinkTrack, name: str, namespace: Namespace, configuration: dict[str, Any]) -> Iterator[None]:
    folder = track.folder_of(name)
    path = folder / "envoy.json"
    path.write_text(json.dumps(configuration, indent=1))
    line = [built("envoy"), "-c", path, "--disable-hot-restart", "--log-level", "warning", "--concurrency", "2"]
    with Child(namespace.inside(line), folder / "envoy.log") as child:
        port = configuration["static_resources"]["listeners"][0]["address"]["socket_address"]["port_value"]
        wait_for_port(namespace, port, child)
        yield


def _redirects(device: str) -> str:
    return intercept(device, f"tcp dport 80 redirect to :{HTTP}", f"tcp dport 443 redirect to :{TLS}")


def _bootstrap(admin: int, listeners: list[Any], clusters: list[Any]) -> dict[str, Any]:
    return {
        "admin": {"address": _socket("127.0.0.1", admin)},
        "static_resources": {"listeners": listeners, "clusters": clusters},
    }


def _socket(address: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": address, "port_value": port}}


def _typed(name: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "typed_config": {"@type": f"{TYPE}{kind}", **fields}}


def _listener(name: str, port: int, *filters: dict[str, Any], redirected: bool = True) -> dict[str, Any]:
    original = [_typed("original_dst", "extensions.filters.listener.original_dst.v3.OriginalDst")] if redirected else []
    return {
        "name": name,
        "address": _socket("0.0.0.0", port),
        "listener_filters": original,
        "filter_chains": [{"filters": list(filters)}],
    }


def _tcp(cluster: str, **fields: Any) -> dict[str, Any]:
    return _typed(
        "tcp", "extensions.filters.network.tcp_proxy.v3.TcpProxy", stat_prefix="tcp", cluster=cluster, **fields
    )


def _tcp_listener(name: str, port: int, cluster: str) -> dict[str, Any]:
    return _listener(name, port, _tcp(cluster))


def _http(route: dict[str, Any], **fields: Any) -> dict[str, Any]:
    router = _typed("envoy.filters.http.router", "extensions.filters.http.router.v3.Router")
    return _typed(
        "http", "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", stat_prefix="http",
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], **route}]}, http_filters=[router], **fields,
    )  # fmt: skip


def _requests_listener() -> dict[str, Any]:
    onward = {
        "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "pipe", "timeout": "0s"}}],
        "request_headers_to_add": [
            {"header": {"key": ORIGINAL, "value": "%DOWNSTREAM_LOCAL_ADDRESS%"},
             "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
        ],
    }  # fmt: skip
    return _listener("requests", HTTP, _http(onward))


def _connect_listener() -> dict[str, Any]:
    header = {"header": {"key": ORIGINAL, "value": "%DOWNSTREAM_LOCAL_ADDRESS%"}}
    tunnel = {"hostname": "%DOWNSTREAM_LOCAL_ADDRESS%", "headers_to_add": [header]}
    return _listener("connections", TLS, _tcp("pipe", tunneling_config=tunnel))


def _pipe_end() -> dict[str, Any]:
    """The far end: CONNECT becomes a connection to where the client wanted to go, requests are passed on there."""
    connect = {
        "match": {"connect_matcher": {}},
        "route": {"cluster": "origin", "timeout": "0s", "upgrade_configs": [
            {"upgrade_type": "CONNECT", "connect_config": {}}]},
    }  # fmt: skip
    plain = {"match": {"prefix": "/"}, "route": {"cluster": "origin", "timeout": "0s"}}
    http2 = {**_windows(), "allow_connect": True}
    end = _http({"routes": [connect, plain]}, codec_type="HTTP2", http2_protocol_options=http2,
                upgrade_configs=[{"upgrade_type": "CONNECT"}])  # fmt: skip
    return _listener("pipe", PIPE, end, redirected=False)


def _windows() -> dict[str, int]:
    return {
        "initial_stream_window_size": WINDOW_BYTES,
        "initial_connection_window_size": WINDOW_BYTES,
        "max_concurrent_streams": 1000,
    }


def _pipe() -> dict[str, Any]:
    protocol = {"explicit_http_config": {"http2_protocol_options": _windows()}}
    options = f"{TYPE}extensions.upstreams.http.v3.HttpProtocolOptions"
    return {
        "name": "pipe",
        "type": "STATIC",
        "connect_timeout": "30s",
        "load_assignment": {
            "cluster_name": "pipe",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _socket(FAR, PIPE)}}]}],
        },
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {"@type": options, **protocol}
        },
    }


def _origin(by_header: bool = False) -> dict[str, Any]:
    cluster: dict[str, Any] = {
        "name": "origin", "type": "ORIGINAL_DST", "lb_policy": "CLUSTER_PROVIDED", "connect_timeout": "10s",
    }  # fmt: skip
    if by_header:
        cluster["original_dst_lb_config"] = {"use_http_header": True, "http_header_name": ORIGINAL}
    return cluster


def plain_envoy_contenders() -> tuple[LinkContender, ...]:
    """All of them."""
    return SplitTcp(window=False), SplitTcp(window=True), Http2Pair()
