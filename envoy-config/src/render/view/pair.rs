//! The pair: what one end of the link shows the other.

use std::net::IpAddr;

use serde::Serialize;

use super::Socket;
use super::tls::Certificate;
use super::wasm::WasmFilter;
use crate::config::{Host, Identity, Role, Settings};
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
    /// Most connections of clients' bytes at one time, warm ones included.
    max_connections: u64,
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
    /// Who answers what remotes' clients ask of the DNS.
    dns: Socket,
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
                    max_connections: u64::from(settings.limits.connections) + 4 * u64::from(remote.warm),
                };
                Some(Self::of(&remote.identity, Some(end), None))
            }
            Role::Ground(ground) => {
                let pinned = ground.remotes.iter().map(|name| Pinned { san_type: "DNS", value: name.to_string() });
                let end = GroundEnd {
                    listen: ground.listen.into(),
                    pinned: pinned.collect(),
                    dns: artifacts.resolver?.into(),
                };
                Some(Self::of(&ground.identity, None, Some(end)))
            }
        }
    }

    fn of(identity: &Identity, remote: Option<RemoteEnd>, ground: Option<GroundEnd>) -> Self {
        Self {
            alpn_bytes: ALPN_BYTES,
            certificate: Certificate::of_pair(identity),
            ca: identity.ca.display().to_string(),
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
