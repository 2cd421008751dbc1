//! The pair: what one end of the link shows the other.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::Serialize;

use super::Socket;
use super::tls::Certificate;
use super::transport::envoy as envoy_duration;
use super::wasm::WasmFilter;
use crate::config::{Host, HostName, HostPort, Identity, Peer, PipeTransport, Remote, Role, Settings, WhenDown};
use crate::render::Artifacts;

/// ALPN of connections that carry one client's bytes each. What follows on them is TLS of the client, routed by its
/// server name, or else DNS over TCP: the remote lets nothing else onto them.
const ALPN_BYTES: &str = "longhaul-bytes";
/// ALPN of a ground that dials, while it shows who it is.
const ALPN_DIAL: &str = "longhaul-dial";

/// Tunnels that a ground opens where it is the one that dials: the pipe, a check of it where the remote wants one, and
/// two for what comes after them. Each costs a handshake, and a ping now and then.
const TUNNELS: u32 = 4;
/// Streams of one pipe. Where the remote dials it opens another pipe for more; out of so few tunnels it cannot, and
/// every TLS connection of a client is a stream.
const STREAMS: u32 = 1000;
const STREAMS_OF_A_TUNNEL: u32 = 16_384;

/// A box's end of the link; `remote` or `ground` is set.
#[derive(Debug, Serialize)]
pub(in super::super) struct Pair {
    alpn_bytes: &'static str,
    alpn_dial: &'static str,
    /// Our certificate, as a secret of its own: renewed without touching a connection.
    pub(in super::super) certificate: Certificate,
    /// Authorities that sign for the pair.
    ca: String,
    /// Who answers what remotes' clients ask of the DNS: the resolver of ours that leaves refused addresses out.
    resolver: Option<Socket>,
    remote: Option<RemoteEnd>,
    ground: Option<GroundEnd>,
    /// Most streams on one connection of the pipe.
    streams: u32,
}

/// What the end beside the clients needs.
#[derive(Debug, Serialize)]
struct RemoteEnd {
    /// Where connections to the ground are opened; on this host where it dials.
    ground: Target,
    /// One of these names its certificate must bear.
    pinned: Vec<Pinned>,
    /// The ground dials, and where.
    dialled: Option<Dialled>,
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

/// The other end as it is dialled.
#[derive(Debug, Serialize)]
struct Target {
    /// Address or name, and port.
    socket: Socket,
    /// It is found by its name.
    by_name: bool,
    /// An end known by name is asked for by it; an address sends none.
    server_name: Option<String>,
    /// Who knows the address of one given by name.
    resolvers: Vec<Socket>,
}

/// How a ground that dials is met.
#[derive(Debug, Serialize)]
struct Dialled {
    /// Where its tunnels come in.
    listen: Socket,
    /// Where the pipe is led into one of them.
    near: Socket,
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
    /// None: it dials.
    listen: Option<Socket>,
    /// The remote it dials.
    dials: Option<Target>,
    /// How many tunnels to it are kept open.
    tunnels: u32,
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
                    ground: match &remote.ground {
                        Peer::Dialled { at } => Target::of(at, settings),
                        Peer::Dials { .. } => Target::near(artifacts.near.dialled),
                    },
                    pinned: Pinned::all(&remote.ground),
                    dialled: remote
                        .ground
                        .listen()
                        .map(|listen| Dialled { listen: listen.into(), near: artifacts.near.dialled.into() }),
                    own_addresses: settings.proxy.addresses.iter().copied().map(Own::from).collect(),
                    hold: artifacts.near.hold.into(),
                    hold_pipe: artifacts.near.hold_pipe.into(),
                    dns: artifacts.near.dns.into(),
                    pool: remote.warm > 0,
                    requests: if direct { "pipe_or_direct" } else { "pipe" },
                    bytes: if direct { "warm_or_direct" } else { "warm" },
                    quic: remote.transport == PipeTransport::H3,
                    direct: direct.then(|| Direct::over(settings.link.rtt)),
                    max_connections: u64::from(settings.limits.connections) + 4 * u64::from(remote.warm),
                };
                Some(Self::of(settings, &remote.identity, artifacts.resolver, Some(end), None))
            }
            Role::Ground(ground) => {
                let end = GroundEnd {
                    listen: ground.remote.listen().map(Socket::from),
                    dials: match &ground.remote {
                        Peer::Dialled { at } => Some(Target::of(at, settings)),
                        Peer::Dials { .. } => None,
                    },
                    tunnels: TUNNELS,
                    pinned: Pinned::all(&ground.remote),
                };
                Some(Self::of(settings, &ground.identity, artifacts.resolver, None, Some(end)))
            }
        }
    }

    fn of(
        settings: &Settings,
        identity: &Identity,
        resolver: Option<SocketAddr>,
        remote: Option<RemoteEnd>,
        ground: Option<GroundEnd>,
    ) -> Self {
        Self {
            alpn_bytes: ALPN_BYTES,
            alpn_dial: ALPN_DIAL,
            certificate: Certificate::of_pair(identity),
            ca: identity.ca.display().to_string(),
            resolver: resolver.map(Socket::from),
            remote,
            ground,
            streams: if settings.role.ground_dials() { STREAMS_OF_A_TUNNEL } else { STREAMS },
        }
    }
}

impl Target {
    fn of(at: &HostPort, settings: &Settings) -> Self {
        Self {
            socket: Socket { address: at.host.to_string(), port: at.port },
            by_name: matches!(at.host, Host::Name(_)),
            server_name: match &at.host {
                Host::Name(name) => Some(name.to_string()),
                Host::Address(_) => None,
            },
            resolvers: settings.upstream.resolvers.iter().copied().map(Socket::from).collect(),
        }
    }

    /// On this host.
    fn near(socket: SocketAddr) -> Self {
        Self { socket: socket.into(), by_name: false, server_name: None, resolvers: Vec::new() }
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
    let (role, packs) = match &settings.role {
        Role::Edge => return None,
        Role::Remote(remote) => ("remote", remote.pack_headers),
        Role::Ground(ground) => ("ground", ground.pack_headers),
    };
    if !packs {
        return None;
    }
    let configuration = format!("{{\"role\":\"{role}\"}}");
    Some(WasmFilter::new("header-compression", &artifacts.root, module, configuration, CAPABILITIES))
}

/// The filter as a ground has it, at a remote that goes to origins itself: a request may have been packed for the pipe
/// when its turn came to go past it.
pub(super) fn header_compression_direct(settings: &Settings, artifacts: &Artifacts) -> Option<WasmFilter> {
    let module = artifacts.header_compression.as_ref()?;
    let direct = matches!(settings.role, Role::Remote(Remote { when_down: WhenDown::Direct, pack_headers: true, .. }));
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
    /// What the certificate of `peer` may be for.
    fn all(peer: &Peer) -> Vec<Self> {
        match peer {
            Peer::Dialled { at } => vec![Self::of(&at.host)],
            Peer::Dials { names, .. } => names.iter().map(Self::name).collect(),
        }
    }

    fn name(name: &HostName) -> Self {
        Self { san_type: "DNS", value: name.to_string() }
    }

    fn of(host: &Host) -> Self {
        match host {
            Host::Name(name) => Self::name(name),
            Host::Address(address) => Self { san_type: "IP_ADDRESS", value: address.to_string() },
        }
    }
}
