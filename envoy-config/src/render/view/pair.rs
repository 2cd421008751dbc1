//! The pair: what one end of the link shows the other.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::Serialize;

use super::Socket;
use super::tls::Certificate;
use super::transport::envoy as envoy_duration;
use super::wasm::WasmFilter;
use crate::config::{Host, Identity, PipeTransport, Remote, Role, Settings, WhenDown};
use crate::render::Artifacts;

/// ALPN of connections that carry one client's bytes each. What follows on them is TLS of the client, routed by its
/// server name, or else DNS over TCP: the remote lets nothing else onto them.
const ALPN_BYTES: &str = "longhaul-bytes";

/// A box's end of the link; `remote` or `ground` is set.
#[derive(Debug, Serialize)]
pub(in super::super) struct Pair {
    alpn_bytes: &'static str,
    /// Our certificate, as a secret of its own: renewed without touching a connection.
    pub(in super::super) certificate: Certificate,
    /// Authorities that sign for the pair.
    ca: String,
    /// Who answers what remotes' clients ask of the DNS: the resolver of ours that leaves refused addresses out.
    resolver: Option<Socket>,
    remote: Option<RemoteEnd>,
    ground: Option<GroundEnd>,
}

/// What the end beside the clients needs.
#[derive(Debug, Serialize)]
struct RemoteEnd {
    /// Address or name of the ground, and its port.
    ground: Socket,
    /// The ground is found by its name.
    by_name: bool,
    /// A ground known by name is asked for by it; an address sends none.
    server_name: Option<String>,
    /// Kind and value of the name its certificate must bear.
    pinned: Pinned,
    /// Where clients meet us: what is sent there and names nobody else has come to its end.
    own_addresses: Vec<Own>,
    /// Where connections are held open that keep others warm.
    hold: Socket,
    /// The same for the pipe.
    hold_pipe: Socket,
    /// Where CoreDNS asks for the ground's resolver.
    dns: Socket,
    /// Connections are opened ahead of need, each for one client's bytes; without, those are streams of the pipe.
    pool: bool,
    /// Who knows the address of a ground given by name.
    resolvers: Vec<Socket>,
    /// Clusters of clients' requests and of their bytes.
    requests: &'static str,
    bytes: &'static str,
    /// Requests cross the link on QUIC.
    quic: bool,
    /// Origins are reached from here while the ground does not answer.
    direct: Option<Direct>,
    /// Most connections of clients' bytes at one time, warm ones included.
    max_connections: u64,
}

/// How it is seen that the ground does not answer.
#[derive(Debug, Serialize)]
struct Direct {
    /// Between two checks, in Envoy's notation.
    check_interval: String,
    /// How long one may take.
    check_timeout: String,
}

/// One of our addresses, and the length of the prefix that is it alone.
#[derive(Debug, Serialize)]
struct Own {
    text: String,
    bits: u8,
}

/// What the end on the wired side needs.
#[derive(Debug, Serialize)]
struct GroundEnd {
    listen: Socket,
    /// One of these names a remote's certificate must bear.
    pinned: Vec<Pinned>,
}

/// A subject alternative name, in Envoy's words.
#[derive(Debug, Serialize)]
struct Pinned {
    san_type: &'static str,
    value: String,
}

impl Pair {
    /// None for a box alone.
    pub(super) fn new(settings: &Settings, artifacts: &Artifacts) -> Option<Self> {
        match &settings.role {
            Role::Edge => None,
            Role::Remote(remote) => {
                let direct = remote.when_down == WhenDown::Direct;
                let end = RemoteEnd {
                    ground: Socket { address: remote.ground.host.to_string(), port: remote.ground.port },
                    by_name: matches!(remote.ground.host, Host::Name(_)),
                    server_name: match &remote.ground.host {
                        Host::Name(name) => Some(name.to_string()),
                        Host::Address(_) => None,
                    },
                    pinned: Pinned::of(&remote.ground.host),
                    own_addresses: settings.proxy.addresses.iter().copied().map(Own::from).collect(),
                    hold: artifacts.near.hold.into(),
                    hold_pipe: artifacts.near.hold_pipe.into(),
                    dns: artifacts.near.dns.into(),
                    pool: remote.warm > 0,
                    resolvers: settings.upstream.resolvers.iter().copied().map(Socket::from).collect(),
                    requests: if direct { "pipe_or_direct" } else { "pipe" },
                    bytes: if direct { "warm_or_direct" } else { "warm" },
                    quic: remote.transport == PipeTransport::H3,
                    direct: direct.then(|| Direct::over(settings.link.rtt)),
                    max_connections: u64::from(settings.limits.connections) + 4 * u64::from(remote.warm),
                };
                Some(Self::of(&remote.identity, artifacts.resolver, Some(end), None))
            }
            Role::Ground(ground) => {
                let pinned = ground.remotes.iter().map(|name| Pinned { san_type: "DNS", value: name.to_string() });
                let end = GroundEnd { listen: ground.listen.into(), pinned: pinned.collect() };
                Some(Self::of(&ground.identity, artifacts.resolver, None, Some(end)))
            }
        }
    }

    fn of(
        identity: &Identity,
        resolver: Option<SocketAddr>,
        remote: Option<RemoteEnd>,
        ground: Option<GroundEnd>,
    ) -> Self {
        Self {
            alpn_bytes: ALPN_BYTES,
            certificate: Certificate::of_pair(identity),
            ca: identity.ca.display().to_string(),
            resolver: resolver.map(Socket::from),
            remote,
            ground,
        }
    }
}

/// Callbacks, host calls and WASI calls header-compression is allowed; Envoy answers any other with an error.
const CAPABILITIES: &[&str] = &[
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_write",
    "proc_exit",
    "proxy_define_metric",
    "proxy_get_buffer_bytes",
    "proxy_get_header_map_pairs",
    "proxy_get_property",
    "proxy_increment_metric",
    "proxy_log",
    "proxy_on_configure",
    "proxy_on_context_create",
    "proxy_on_delete",
    "proxy_on_memory_allocate",
    "proxy_on_request_headers",
    "proxy_on_response_headers",
    "proxy_on_vm_start",
    "proxy_send_local_response",
    "proxy_set_header_map_pairs",
    "random_get",
];

/// The header-compression filter of this end; none for a box alone.
pub(super) fn header_compression(settings: &Settings, artifacts: &Artifacts) -> Option<WasmFilter> {
    let module = artifacts.header_compression.as_ref()?;
    let role = match settings.role {
        Role::Edge => return None,
        Role::Remote(_) => "remote",
        Role::Ground(_) => "ground",
    };
    let configuration = format!("{{\"role\":\"{role}\"}}");
    Some(WasmFilter::new("header-compression", &artifacts.root, module, configuration, CAPABILITIES))
}

/// The filter as a ground has it, at a remote that goes to origins itself: a request may have been packed for the pipe
/// when its turn came to go past it.
pub(super) fn header_compression_direct(settings: &Settings, artifacts: &Artifacts) -> Option<WasmFilter> {
    let module = artifacts.header_compression.as_ref()?;
    let direct = matches!(settings.role, Role::Remote(Remote { when_down: WhenDown::Direct, .. }));
    let configuration = "{\"role\":\"ground\"}".to_owned();
    let name = "header-compression-direct";
    direct.then(|| WasmFilter::new(name, &artifacts.root, module, configuration, CAPABILITIES))
}

impl Direct {
    fn over(rtt: Duration) -> Self {
        // The first check of a connection takes three round trips, and finds the link's queue full at times.
        let [check_interval, check_timeout] =
            [Duration::from_secs(1) + rtt * 2, Duration::from_secs(2) + rtt * 4].map(envoy_duration);
        Self { check_interval, check_timeout }
    }
}

impl From<IpAddr> for Own {
    fn from(address: IpAddr) -> Self {
        Self { text: address.to_string(), bits: if address.is_ipv4() { 32 } else { 128 } }
    }
}

impl Pinned {
    fn of(host: &Host) -> Self {
        match host {
            Host::Name(name) => Self { san_type: "DNS", value: name.to_string() },
            Host::Address(address) => Self { san_type: "IP_ADDRESS", value: address.to_string() },
        }
    }
}
