//! The configuration once it has been checked: what every other part of the command works from.
//!
//! A value of these types has passed every check of `longhaul check`; nobody checks again. There is no string where a
//! type exists, and nothing here changes after loading: a changed file makes a new `Settings`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use cache_admission::{Admit, PlainField};
use ipnet::IpNet;

use super::allowlist::NamePattern;
use super::names::{Host, HostName, HostPort};
use super::units::{Bytes, Rate};
use crate::config::{LinkClass, LinkModel, Overrides};

/// One checked `longhaul.yaml`.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The file this was read from, absolute. Relative paths in it have been resolved against its folder already.
    pub file: PathBuf,
    /// The role of this box.
    pub role: Role,
    /// The slow link.
    pub link: Link,
    /// Where clients find us.
    pub proxy: Proxy,
    /// The sockets that this box binds.
    pub listen: Listen,
    /// The hosts that this box may reach.
    pub upstream: Upstream,
    /// Which URLs move where.
    pub rewrite: Rewrite,
    /// Which names are steered.
    pub dns: Dns,
    /// Where objects are kept.
    pub cache: Cache,
    /// The compression of responses.
    pub compress: Compress,
    /// Prefetching, bundling and inlining of a page's objects.
    pub page: Page,
    /// Certificates the operator holds, in the order written.
    pub terminate: Vec<Termination>,
    /// Values the operator set in place of derived ones.
    pub transport: Overrides,
    /// Bounds.
    pub limits: Limits,
    /// Where spans of requests go. None: nowhere.
    pub tracing: Option<Tracing>,
}

/// Spans for an OpenTelemetry collector (OTLP over HTTP).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tracing {
    /// The collector.
    pub collector: SocketAddr,
    /// The percentage of requests with spans.
    pub sample_percent: u32,
}

/// The role of a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// One box on the wired side of the link.
    Edge,
    /// The near end of a pair: beside the clients.
    Remote(Remote),
    /// The far end of a pair: on the wired side.
    Ground(Ground),
}

/// A role by its name alone, without the settings of its pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleName {
    /// See [`Role::Edge`].
    Edge,
    /// See [`Role::Remote`].
    Remote,
    /// See [`Role::Ground`].
    Ground,
}

impl RoleName {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Remote => "remote",
            Self::Ground => "ground",
        }
    }
}

impl Role {
    /// The role's name.
    pub fn name(&self) -> RoleName {
        match self {
            Self::Edge => RoleName::Edge,
            Self::Remote(_) => RoleName::Remote,
            Self::Ground(_) => RoleName::Ground,
        }
    }

    /// The word in the file.
    pub fn as_str(&self) -> &'static str {
        self.name().as_str()
    }

    /// Returns whether origins are reached from here, at least at times.
    pub fn reaches_origins(&self) -> bool {
        match self {
            Self::Edge | Self::Ground(_) => true,
            Self::Remote(remote) => remote.when_down == WhenDown::Direct,
        }
    }

    /// The other end of a pair; none for a box alone.
    pub fn peer(&self) -> Option<&Peer> {
        match self {
            Self::Edge => None,
            Self::Remote(remote) => Some(&remote.ground),
            Self::Ground(ground) => Some(&ground.remote),
        }
    }

    /// Where a remote waits for a ground that dials; a ground's own socket is [`Listen::http`].
    pub fn dialled_in(&self) -> Option<SocketAddr> {
        match self {
            Self::Remote(remote) => remote.ground.listen(),
            Self::Edge | Self::Ground(_) => None,
        }
    }

    /// Returns whether the ground opens the connections over the link (`split.dial: ground`).
    pub fn ground_dials(&self) -> bool {
        match self {
            Self::Edge => false,
            Self::Remote(remote) => remote.ground.dials(),
            Self::Ground(ground) => !ground.remote.dials(),
        }
    }

    /// The certificate of an end of a pair; none for a box alone.
    pub fn identity(&self) -> Option<&Identity> {
        match self {
            Self::Edge => None,
            Self::Remote(remote) => Some(&remote.identity),
            Self::Ground(ground) => Some(&ground.identity),
        }
    }
}

/// The end beside the clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// Where the ground is, or that it comes to us.
    pub ground: Peer,
    /// This end's certificate, and the authority of the other end's.
    pub identity: Identity,
    /// Connections over the link that are open and unused at any time, so that a client's need not wait for a handshake.
    pub warm: u32,
    /// The treatment of QUIC, which a proxy of TCP cannot carry.
    pub udp443: Udp443,
    /// Queries for listed names get this box's address before the ground was queried. It finds the origin by the name.
    pub instant_answers: bool,
    /// Headers are compressed before they cross the link.
    pub pack_headers: bool,
    /// The result for clients while the ground does not respond.
    pub when_down: WhenDown,
    /// For this time, a ground that refuses counts as restarting, and requests that may be sent twice are retried.
    pub restart_wait: Duration,
    /// The protocol of the pipe.
    pub transport: PipeTransport,
}

/// The other end of a pair, and who opens the connections between the two (`split.dial`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// We do.
    Dialled {
        /// Where it listens. Its certificate must be for this very host.
        at: HostPort,
    },
    /// It does.
    Dials {
        /// Where we listen.
        listen: SocketAddr,
        /// Names of which its certificate must bear one. At least one.
        names: Vec<HostName>,
    },
}

impl Peer {
    /// Where we listen for it; None where we dial.
    pub fn listen(&self) -> Option<SocketAddr> {
        match self {
            Self::Dialled { .. } => None,
            Self::Dials { listen, .. } => Some(*listen),
        }
    }

    /// Returns whether it opens the connections.
    pub fn dials(&self) -> bool {
        matches!(self, Self::Dials { .. })
    }
}

/// The protocol of the pipe. Clients' bytes have TCP connections in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipeTransport {
    /// HTTP/2 over TCP.
    H2,
    /// HTTP/3 over QUIC: a lost packet holds up the requests it belongs to and no others.
    H3,
}

/// The behaviour of a remote while the ground does not respond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenDown {
    /// Says so.
    Error,
    /// Goes to origins itself, over whatever route its host has.
    Direct,
}

/// The end on the wired side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ground {
    /// Where remotes come to us, or the one we go to.
    pub remote: Peer,
    /// Headers are compressed before they cross the link, if the remote does so too.
    pub pack_headers: bool,
    /// The protocols that remotes may use: HTTP/2 always, and HTTP/3 if it is written.
    pub transport: PipeTransport,
    /// This end's certificate, and the authority of the other end's.
    pub identity: Identity,
}

/// A certificate for mutual TLS, and the authority that signed the other end's. Absolute paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// PEM certificate chain.
    pub cert: PathBuf,
    /// PEM private key.
    pub key: PathBuf,
    /// PEM certificates of the authorities that sign for this pair, and for nobody else.
    pub ca: PathBuf,
}

/// UDP to port 443 from clients of a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Udp443 {
    /// Routed as usual: QUIC bypasses the pair.
    Pass,
    /// Refused with ICMP, so that browsers use TCP at once, and the pair.
    Refuse,
}

/// The slow link, as its operator describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Round-trip time without queueing.
    pub rtt: Duration,
    /// Rate toward the clients.
    pub down: Rate,
    /// Rate from the clients.
    pub up: Rate,
}

/// Where clients find the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// First in DNS responses, and the http targets of moved URLs. At least one; without duplicates.
    pub addresses: Vec<IpAddr>,
    /// The proxy's own https names or addresses; each is covered by a certificate in [`Settings::terminate`].
    pub secure_names: Vec<Host>,
}

/// The sockets we bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen {
    /// Transparent and proxy-address http traffic; a ground's pipe. None: a ground that dials.
    pub http: Option<SocketAddr>,
    /// TLS: our own names, terminated names, everything else passed through by SNI. None: `off`.
    pub tls: Option<SocketAddr>,
    /// The steering DNS, UDP and TCP. None: `off`.
    pub dns: Option<SocketAddr>,
    /// Envoy's admin interface; always a loopback address.
    pub admin: SocketAddr,
    /// Prometheus metrics of CoreDNS. None: `off`.
    pub metrics: Option<SocketAddr>,
    /// How packets get here that were not addressed to us.
    pub intercept: Intercept,
}

/// How client packets for other addresses reach our listeners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intercept {
    /// An nft `redirect` rule; the original destination is read from conntrack.
    Redirect,
    /// An nft `tproxy` rule; the listeners are transparent sockets (`CAP_NET_ADMIN`).
    Tproxy,
    /// None: clients come because DNS sent them.
    None,
}

/// The hosts that this box may reach on the wired side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// Resolvers for the names of origins, never this box's own DNS. At least one.
    pub resolvers: Vec<SocketAddr>,
    /// Ports that clients may reach through the proxy. At least one.
    pub ports: BTreeSet<u16>,
    /// Private, loopback, link-local or multicast ranges that are reachable anyway.
    pub allow_private: Vec<IpNet>,
    /// Ranges that are not reachable, whatever else allows them: this box's public address behind a NAT, for one.
    pub deny: Vec<IpNet>,
    /// Origins reached at a fixed address and port instead of by DNS on the URL's port.
    pub map: BTreeMap<HostName, SocketAddr>,
}

/// The URLs that move, and their target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// How much is moved.
    pub level: Level,
    /// The target as written; the chosen one is [`crate::derive::Derived::target`].
    pub target: TargetWish,
    /// Names never touched, each with everything below it.
    pub exclude: Vec<HostName>,
}

/// How much a page is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Nothing.
    Off,
    /// URLs that can move without a change in the page's behaviour.
    Safe,
    /// Also objects of the page's own host.
    Full,
}

impl Level {
    /// The word in the file, and in the filter's configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Safe => "safe",
            Self::Full => "full",
        }
    }
}

/// Where moved URLs shall point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetWish {
    /// The kind that the link model expects to gain; nothing moves where moving would slow a page.
    Auto,
    /// The secure names.
    Https,
    /// The proxy addresses.
    Http,
}

/// DNS steering.
#[derive(Debug, Clone, PartialEq)]
pub struct Dns {
    /// Allowlist files, absolute, each readable and without a bad line when checked.
    pub domains: Vec<PathBuf>,
    /// Names in the file itself that are never steered.
    pub except_names: Vec<NamePattern>,
    /// Files of names that are never steered, absolute and checked like `domains`.
    pub except_files: Vec<PathBuf>,
    /// Also steer any name whose first label is `www`.
    pub www: bool,
    /// The treatment of the origin's addresses.
    pub mode: DnsMode,
    /// TTL of steered responses.
    pub ttl: Ttl,
    /// The response to AAAA queries where the proxy has no IPv6 address.
    pub aaaa: AaaaPolicy,
    /// The response to HTTPS queries (type 65).
    pub https: HttpsPolicy,
    /// The treatment of responses that a client may validate.
    pub dnssec: DnssecPolicy,
    /// Respond to `use-application-dns.net` so that browsers keep using this server.
    pub canary: bool,
    /// How often lists are looked at; zero: never.
    pub reload: Duration,
    /// Stop steering while the proxy does not respond.
    pub health: bool,
    /// Clients that always get the truth.
    pub bypass: Vec<IpNet>,
}

/// The treatment of the origin's addresses in a steered response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsMode {
    /// Proxy first, then at most this many of the origin's.
    Prepend {
        /// Origin addresses kept.
        max_origin: u8,
    },
    /// Only the proxy.
    Replace,
}

/// Bounds of the one TTL of a steered response, which is the origin's otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ttl {
    /// Lower bound.
    pub min: Duration,
    /// Upper bound.
    pub max: Duration,
}

/// AAAA of a steered name where the proxy has no IPv6 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AaaaPolicy {
    /// No data, with an SOA.
    Nodata,
    /// The truth: clients with IPv6 bypass the proxy.
    Pass,
}

/// HTTPS records of a steered name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpsPolicy {
    /// No data, with an SOA.
    Nodata,
    /// The record without addresses, ECH and HTTP/3.
    Strip,
    /// The truth.
    Pass,
}

/// Signed responses to a client that validates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnssecPolicy {
    /// Left alone.
    Skip,
    /// Rewritten anyway: validation at clients fails.
    Break,
}

/// Where objects are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cache {
    /// Nowhere.
    Off,
    /// Envoy's own cache on disk.
    Disk {
        /// Its folder, absolute.
        dir: PathBuf,
        /// Its size.
        size: Bytes,
        /// When a URL is admitted.
        admit: Admit,
        /// Request fields that change no response and keep no request from the cache.
        plain_fields: Vec<PlainField>,
    },
    /// An existing caching proxy is asked instead of the origin; by address, as Envoy connects to it for every object.
    Parent(SocketAddr),
}

/// Compression toward clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compress {
    /// Brotli quality 0-11; None: `off`.
    pub brotli: Option<u8>,
    /// Gzip level 1-9; None: `off`.
    pub gzip: Option<u8>,
}

/// Prefetching, bundling and inlining of a page's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Its moved objects are fetched into the cache while it streams by.
    pub prefetch: bool,
    /// Its objects are sent to the near end of a pair behind it.
    pub bundle: bool,
    /// Small objects are put into it.
    pub inline: Inline,
}

/// When small objects are put into pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inline {
    /// Where the link model expects it to pay.
    Auto,
    /// Within the link's budget, always.
    On,
    /// Never.
    Off,
}

/// A certificate the operator gave and the names it is used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Termination {
    /// Names (or, for the proxy itself, addresses) served with it. At least one; a name stands in one entry only.
    pub names: Vec<Host>,
    /// PEM certificate chain, absolute path.
    pub cert: PathBuf,
    /// PEM private key, absolute path.
    pub key: PathBuf,
}

/// Bounds on what one client or page may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory the rewriter may hold for one page.
    pub page_memory: Bytes,
    /// Client connections at one time.
    pub connections: u32,
    /// Header block of one request.
    pub header: Bytes,
    /// Different URLs that Envoy's cache may remember, some kilobyte each, before another Envoy takes over.
    pub urls: u32,
    /// New names that one client may request at once, and each minute.
    pub new_names_per_client: u32,
}

impl Settings {
    /// Authorities an http object can be moved to without TLS: `ADDRESS`, with the port where it is not 80.
    pub fn http_authorities(&self) -> Vec<String> {
        let Some(http) = self.listen.http else { return Vec::new() };
        self.proxy.addresses.iter().map(|a| Host::Address(*a).authority(http.port(), 80)).collect()
    }

    /// The proxy's own https authorities: names or addresses, with the port where it is not 443.
    pub fn https_authorities(&self) -> Vec<String> {
        let Some(tls) = self.listen.tls else { return Vec::new() };
        self.proxy.secure_names.iter().map(|name| name.authority(tls.port(), 443)).collect()
    }

    /// Returns whether a filter requests objects of its own accord, through the hop `fetch`.
    pub fn fetches(&self) -> bool {
        let sees_pages = match self.role {
            Role::Edge | Role::Ground(_) => true,
            Role::Remote(_) => false,
        };
        let bundles = self.page.bundle && matches!(self.role, Role::Ground(_));
        sees_pages && (self.prefetches() || bundles)
    }

    /// Returns whether a page's moved objects are fetched ahead: where some move, and into a cache of our own, as nothing else
    /// would keep them.
    pub fn prefetches(&self) -> bool {
        self.page.prefetch && self.rewrite.level != Level::Off && matches!(self.cache, Cache::Disk { .. })
    }

    /// Returns whether small objects are put into pages: of those that were fetched ahead, and where no near box can hold them.
    pub fn inlines(&self) -> bool {
        let pays = match self.page.inline {
            Inline::On => true,
            Inline::Off => false,
            Inline::Auto => LinkModel::of(&self.link).class == LinkClass::LongRoundTrips,
        };
        pays && self.prefetches() && matches!(self.role, Role::Edge)
    }

    /// Every authority that is the proxy itself, secure names first.
    pub fn own_authorities(&self) -> Vec<String> {
        let mut own = self.https_authorities();
        own.extend(self.http_authorities());
        own
    }
}
