//! The pair: the values of one box for its connection to the other.

use longhaul_config::{Ground, Host, HostPort, Identity, PeerName, PipeTransport, Remote, Role, Settings, WhenDown};
use longhaul_derive::{Derived, Ejection, Failover};
use serde::Serialize;

use super::Socket;
use super::tls::Certificate;
use super::transport::envoy as envoy_duration;
use crate::corefile::CorefileContext;
use crate::marks::Mark;
use crate::{Artifacts, Emptied};

/// The ALPN of connections that each carry the bytes of one client. The bytes are TLS, routed by server name, or DNS
/// over TCP. The remote puts nothing else on these connections.
const ALPN_BYTES: &str = "longhaul-bytes";

/// The ALPN of a remote that names the client in front of its bytes, if it knows that the ground reads it. An older end knows
/// [`ALPN_BYTES`] alone, so a remote offers both.
const ALPN_INTRODUCED: &str = "longhaul-introduced";

/// This box's end of the link. Either `remote` or `ground` is set.
#[derive(Debug, Serialize)]
pub(crate) struct Pair {
    /// The chains of a ground for clients' bytes: the cluster and the ALPN.
    bytes_chains: [(&'static str, &'static str); 2],
    /// The protocols that a remote offers for clients' bytes, the preferred one first.
    alpn_warm: String,
    handshake_mark: &'static str,
    /// The certificate of this box. It is a separate secret, so that its renewal affects no connection.
    pub(crate) certificate: Certificate,
    /// The trust in the other end, as a separate secret.
    pub(crate) authority: PeerTrust,
    /// The resolver for the clients of remotes: this box's CoreDNS, which leaves refused addresses out.
    resolver: Option<Socket>,
    remote: Option<RemoteEnd>,
    ground: Option<GroundEnd>,
}

/// The end of the link beside the clients.
#[derive(Debug, Serialize)]
struct RemoteEnd {
    /// The grounds.
    ground: Target,
    /// The socket for held connections that keep other connections warm.
    hold: Socket,
    /// The socket for held connections that keep the pipe open.
    hold_pipe: Socket,
    /// The socket where CoreDNS queries the ground's resolver.
    dns: Socket,
    /// The socket where CoreDNS sends lookups as streams.
    lookups: Socket,
    /// The Unix socket where CoreDNS takes names that the ground sends before they are asked. None: it takes none.
    pushed: Option<String>,
    /// True if something that is open already carries each client's bytes. Otherwise each opens a stream of the pipe.
    pool: bool,
    /// The places in the rotation of each worker, if that is a stream of the pipe. None: a connection.
    rotation: Option<u32>,
    /// How often each pool was emptied.
    emptied: Emptied,
    /// The connections of Envoy's pool for each one in use.
    preconnect_ratio: u64,
    /// The clusters of clients' requests and of their bytes.
    requests: &'static str,
    bytes: &'static str,
    /// True if requests cross the link on QUIC.
    quic: bool,
    /// True if this box connects to origins itself while the ground does not respond.
    direct: bool,
    /// The health check of a ground.
    check: Check,
    /// The retries of requests that the pipe lost.
    again: Again,
    /// The ejection of grounds that refuse connections.
    ejection: Ejected,
    /// The most connections for clients' bytes at one time, including warm ones.
    max_connections: u64,
}

/// The grounds, as they are dialled.
#[derive(Debug, Serialize)]
struct Target {
    /// The address or name and the port of each ground, in the order of their use.
    sockets: Vec<Socket>,
    /// True if a ground is given by name.
    by_name: bool,
    /// The server name. None for a ground given by address, and for several: each then gets its own.
    server_name: Option<String>,
    /// The resolvers for a ground given by name.
    resolvers: Vec<Socket>,
    /// The time between two queries for its address.
    refresh: String,
}

/// The health check of a ground, in Envoy's notation.
#[derive(Debug, Serialize)]
struct Check {
    /// The time between two checks.
    interval: String,
    /// The time between two checks after a failed one.
    failing_interval: String,
    /// The time after which a check fails.
    timeout: String,
    /// The number of failed checks in a row after which it counts as down.
    failures: u32,
}

/// The retries of requests that are safe to retry.
#[derive(Debug, Serialize)]
struct Again {
    /// The number of retries of a request.
    retries: u32,
    /// The number of retries of a client's connection.
    connection_retries: u32,
    /// The longest wait before the first retry. It doubles before each further retry, up to `last`.
    first: String,
    last: String,
}

/// The ejection of grounds that refuse connections.
#[derive(Debug, Serialize)]
struct Ejected {
    /// The number of refused connections in a row after which a ground is ejected.
    after: u32,
    /// The largest share of grounds that may be ejected at a time, in percent.
    most_percent: u32,
    /// The attempts to connect for one client. None: there is one way.
    attempts: Option<u32>,
}

/// The end of the link on the wired side.
#[derive(Debug, Serialize)]
struct GroundEnd {
    /// The listener for remotes.
    listen: Socket,
    /// The socket of the CoreDNS that takes lookups as streams.
    lookups: Socket,
    /// The Unix socket of the CoreDNS that sends names before they are asked. None: it sends none.
    pushed: Option<String>,
}

/// The trust in the other end of the link.
#[derive(Debug, Serialize)]
pub(crate) struct PeerTrust {
    pub(crate) file: &'static str,
    name: &'static str,
    /// The PEM file of the certificate authorities that sign for the pair.
    ca: String,
    /// The folder in which a renewed file appears.
    dir: String,
    /// The names of the peer. Its certificate must have one of them.
    pinned: Vec<Pinned>,
}

/// The type of a subject alternative name and a matcher for it, in Envoy's notation.
#[derive(Debug, Serialize)]
struct Pinned {
    san_type: &'static str,
    matcher: String,
}

impl Pair {
    /// Returns the pair's values. Returns None for an edge.
    pub(super) fn new(settings: &Settings, derived: &Derived, artifacts: &Artifacts) -> Option<Self> {
        let of = |identity: &Identity, pinned| Self {
            bytes_chains: [("bytes", ALPN_BYTES), ("introduced", ALPN_INTRODUCED)],
            alpn_warm: if derived.neighbours.sent_by(&settings.role).is_some() {
                format!("{ALPN_INTRODUCED}, {ALPN_BYTES}")
            } else {
                ALPN_BYTES.to_owned()
            },
            handshake_mark: Mark::Handshake.word(),
            certificate: Certificate::of_pair(identity, artifacts),
            authority: PeerTrust::new(identity, pinned, artifacts),
            resolver: artifacts.resolver.map(Socket::from),
            remote: None,
            ground: None,
        };
        match &settings.role {
            Role::Edge => None,
            Role::Remote(remote) => {
                let pinned = remote.grounds.iter().map(|at| Pinned::of(&at.host)).collect();
                let end = RemoteEnd::new(remote, settings, derived, artifacts)?;
                Some(Self { remote: Some(end), ..of(&remote.identity, pinned) })
            }
            Role::Ground(Ground { listen, remotes, identity, .. }) => {
                let pushed =
                    settings.dns.push.then(|| CorefileContext::pushed_socket(&artifacts.admin).display().to_string());
                let end = GroundEnd { listen: (*listen).into(), lookups: artifacts.near.lookups.into(), pushed };
                Some(Self { ground: Some(end), ..of(identity, remotes.iter().map(Pinned::accepted).collect()) })
            }
        }
    }
}

impl RemoteEnd {
    /// Returns None if nothing was derived for a remote.
    fn new(remote: &Remote, settings: &Settings, derived: &Derived, artifacts: &Artifacts) -> Option<Self> {
        let (warm, failover) = (derived.warm?, derived.failover.as_ref()?);
        let direct = remote.when_down == WhenDown::Direct;
        Some(Self {
            ground: Target::of(&remote.grounds, settings, derived),
            hold: artifacts.near.hold.into(),
            hold_pipe: artifacts.near.hold_pipe.into(),
            dns: artifacts.near.dns.into(),
            lookups: artifacts.near.lookups.into(),
            pushed: (settings.dns.push && !settings.dns.remember.is_zero() && settings.listen.dns.is_some())
                .then(|| CorefileContext::pushed_socket(&artifacts.admin).display().to_string()),
            pool: warm.number > 0,
            rotation: warm.rotation(derived.capacity.workers.value),
            emptied: artifacts.emptied,
            preconnect_ratio: warm.carrier.opened_by_one(),
            requests: if direct { "pipe_or_direct" } else { "pipe" },
            bytes: if direct { "warm_or_direct" } else { "warm" },
            quic: remote.transport == PipeTransport::H3,
            direct,
            check: Check::of(failover),
            again: Again::of(failover),
            ejection: Ejected::of(failover),
            max_connections: u64::from(settings.limits.connections) + 4 * u64::from(warm.number),
        })
    }
}

impl PeerTrust {
    fn new(identity: &Identity, pinned: Vec<Pinned>, artifacts: &Artifacts) -> Self {
        Self {
            file: "sds/authority.yaml",
            name: "authority",
            ca: identity.ca.display().to_string(),
            dir: artifacts.watched_for(&identity.ca),
            pinned,
        }
    }
}

impl Target {
    fn of(at: &[HostPort], settings: &Settings, derived: &Derived) -> Self {
        Self {
            sockets: at.iter().map(|at| Socket { address: at.host.bare(), port: at.port }).collect(),
            by_name: at.iter().any(|at| at.host.is_name()),
            server_name: match at {
                [HostPort { host: Host::Name(name), .. }] => Some(name.to_string()),
                _ => None,
            },
            resolvers: settings.upstream.resolvers.iter().copied().map(Socket::from).collect(),
            refresh: envoy_duration(derived.intervals.resolve),
        }
    }
}

impl Check {
    fn of(failover: &Failover) -> Self {
        Self {
            interval: envoy_duration(failover.check.time),
            failing_interval: envoy_duration(failover.check_again.time),
            timeout: envoy_duration(failover.check_answer.time),
            failures: failover.failures.value,
        }
    }
}

impl Again {
    fn of(failover: &Failover) -> Self {
        Self {
            retries: failover.retries.value,
            connection_retries: failover.connection_retries.value,
            first: envoy_duration(failover.retry_first),
            last: envoy_duration(failover.retry_last),
        }
    }
}

impl Ejected {
    fn of(failover: &Failover) -> Self {
        let Ejection { after, most_percent, attempts } = failover.ejection;
        Self { after, most_percent, attempts }
    }
}

/// Returns the regular expression of a name, whose only special character is the dot.
fn literal(name: &impl std::fmt::Display) -> String {
    name.to_string().replace('.', "[.]")
}

/// Returns the regular expression of the names that an end with one of these names may have. The characters of a SPIFFE ID need no
/// other quotes.
pub(super) fn expression(name: &PeerName) -> String {
    match name {
        PeerName::Exact(name) => literal(name),
        PeerName::Below(name) => format!("[a-z0-9_-]+[.]{}", literal(name)),
        PeerName::Spiffe { id, is_prefix } => format!("{}{}", literal(id), if *is_prefix { "[^,]*" } else { "" }),
    }
}

impl Pinned {
    /// Matches a name by a regular expression. Envoy's exact matcher of DNS names would accept `*.example` for
    /// `ship.example`, and any case.
    fn matching(expression: &str) -> Self {
        Self { san_type: "DNS", matcher: format!("safe_regex: {{ google_re2: {{}}, regex: \"{expression}\" }}") }
    }

    fn accepted(name: &PeerName) -> Self {
        match name {
            PeerName::Exact(_) | PeerName::Below(_) => Self::matching(&expression(name)),
            PeerName::Spiffe { id, is_prefix } => {
                Self { san_type: "URI", matcher: format!("{}: \"{id}\"", if *is_prefix { "prefix" } else { "exact" }) }
            }
        }
    }

    fn of(host: &Host) -> Self {
        match host {
            Host::Name(name) => Self::matching(&literal(name)),
            Host::Address(address) => Self { san_type: "IP_ADDRESS", matcher: format!("exact: \"{address}\"") },
        }
    }
}
