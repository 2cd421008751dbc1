//! The checked configuration, on which every other part of the command works.
//!
//! A value of these types has passed every check of `longhaul check`, and no other part repeats a check. There is no
//! string if a type exists. Nothing here changes after loading: a changed file makes a new `Settings`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use cache_admission::{Admit, PlainField};
use ipnet::IpNet;

use super::allowlist::NamePattern;
use super::names::{Host, HostName, HostPort};
use super::peer_name::PeerName;
use super::share::Share;
use super::sockets::{Family, Sockets};
use super::units::{Bytes, Rate};
use crate::config::{DeltaGain, LinkClass, LinkModel, Overrides};

/// One checked `longhaul.yaml`.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The absolute path of the configuration file. Relative paths in it have been resolved against its folder.
    pub file: PathBuf,
    /// The name of this box among others with the same file. None: the host name.
    pub id: Option<String>,
    /// Envoy's worker threads.
    pub workers: Workers,
    /// The role of this box.
    pub role: Role,
    /// The slow link.
    pub link: Link,
    /// The share of clients that are left alone for comparison. None: `off`.
    pub compare: Option<Share>,
    /// The addresses and names of the proxy for clients.
    pub proxy: Proxy,
    /// The sockets that this box binds.
    pub listen: Listen,
    /// The times of an orderly end.
    pub drain: DrainTimes,
    /// The hosts that this box may reach.
    pub upstream: Upstream,
    /// The URLs that move, and their target.
    pub rewrite: Rewrite,
    /// The DNS names that are steered.
    pub dns: Dns,
    /// The cache of objects.
    pub cache: Cache,
    /// The compression of responses.
    pub compress: Compress,
    /// Prefetching, bundling and inlining of a page's objects.
    pub page: Page,
    /// Smaller variants of images.
    pub images: Images,
    /// The certificates of the operator, in the order of the file.
    pub terminate: Vec<Termination>,
    /// The ACME challenges for the proxy's own names. None: they get no special treatment.
    pub acme: Option<Acme>,
    /// Values that the operator set in place of derived ones.
    pub transport: Overrides,
    /// Bounds on the cost of one client or page.
    pub limits: Limits,
    /// The destination of spans. None if there is no tracing.
    pub tracing: Option<Tracing>,
}

/// The number of Envoy's worker threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    /// One for each processor that the box may use.
    Auto,
    /// The number in the file, at least one.
    Count(u32),
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
    /// A single box on the wired side of the link.
    Edge,
    /// The end of a pair beside the clients.
    Remote(Remote),
    /// The end of a pair on the wired side of the link.
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
    /// Returns the word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Remote => "remote",
            Self::Ground => "ground",
        }
    }
}

impl Role {
    /// Returns the role's name.
    pub fn name(&self) -> RoleName {
        match self {
            Self::Edge => RoleName::Edge,
            Self::Remote(_) => RoleName::Remote,
            Self::Ground(_) => RoleName::Ground,
        }
    }

    /// Returns the word in the file.
    pub fn as_str(&self) -> &'static str {
        self.name().as_str()
    }

    /// Returns true if this box connects to origins, at least at times.
    pub fn reaches_origins(&self) -> bool {
        match self {
            Self::Edge | Self::Ground(_) => true,
            Self::Remote(remote) => remote.when_down == WhenDown::Direct,
        }
    }

    /// Returns the other end of a pair. None for a single box.
    pub fn peer(&self) -> Option<&Peer> {
        match self {
            Self::Edge => None,
            Self::Remote(remote) => Some(&remote.ground),
            Self::Ground(ground) => Some(&ground.remote),
        }
    }

    /// Returns the socket on which a remote waits for a ground that dials. A ground's own socket is [`Listen::http`].
    pub fn dialled_in(&self) -> Option<SocketAddr> {
        match self {
            Self::Remote(remote) => remote.ground.listen(),
            Self::Edge | Self::Ground(_) => None,
        }
    }

    /// Returns true if the ground opens the connections over the link (`split.dial: ground`).
    pub fn ground_dials(&self) -> bool {
        match self {
            Self::Edge => false,
            Self::Remote(remote) => remote.ground.dials(),
            Self::Ground(ground) => !ground.remote.dials(),
        }
    }

    /// Returns the certificate of an end of a pair. None for a single box.
    pub fn identity(&self) -> Option<&Identity> {
        match self {
            Self::Edge => None,
            Self::Remote(remote) => Some(&remote.identity),
            Self::Ground(ground) => Some(&ground.identity),
        }
    }
}

/// The settings of the end beside the clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// The ground, and which end dials.
    pub ground: Peer,
    /// The certificate of this end, and the authority of the other end's.
    pub identity: Identity,
    /// The number of connections or streams over the link that are open and unused at any time, so that clients'
    /// connections need no handshake.
    pub warm: u32,
    /// The carrier of clients' connections over the link.
    pub warm_as: WarmAs,
    /// The treatment of QUIC, which a TCP proxy cannot carry.
    pub udp443: Udp443,
    /// True if queries for listed names get this box's address before the ground is queried. The ground finds the
    /// origin by its name.
    pub instant_answers: bool,
    /// True if headers are compressed before they cross the link.
    pub pack_headers: bool,
    /// The result for clients while the ground does not respond.
    pub when_down: WhenDown,
    /// The time in which a ground that refuses connections counts as restarting. Requests that are safe to repeat are
    /// retried meanwhile.
    pub restart_wait: Duration,
    /// The protocol of the pipe.
    pub transport: PipeTransport,
}

impl Remote {
    /// Returns the number of places in the rotation of one worker, if clients' connections are streams. Each has a stream
    /// in use and an unused one.
    pub fn rotation(&self, workers: u32) -> Option<u32> {
        (self.warm_as == WarmAs::Streams && self.warm > 0).then(|| self.warm.div_ceil(workers.max(1)))
    }
}

/// The carrier of the bytes of each client's connection (`split.warm_as`). The bytes are TLS, or DNS over TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmAs {
    /// A TCP connection over the link with mutual TLS of its own. Each starts with a congestion window of its own.
    Connections,
    /// A stream of the pipe. All share its congestion window, and opening one takes a packet.
    Streams,
}

impl WarmAs {
    /// Returns the bytes on the uplink to open one: a handshake with two certificates and its acknowledgements, or the
    /// headers of a stream in a packet, and the acknowledgement of the response.
    pub const fn opening_bytes(self) -> u64 {
        match self {
            Self::Connections => 4 << 10,
            Self::Streams => 256,
        }
    }

    /// Returns the number of them over the link for each one that is held: itself, and those that are unused
    /// (`per_upstream_preconnect_ratio`).
    pub const fn opened_by_one(self) -> u64 {
        match self {
            Self::Connections => 3,
            Self::Streams => 2,
        }
    }

    /// Returns the number of unused ones for each one that is held.
    pub const fn unused_by_one(self) -> u64 {
        self.opened_by_one() - 1
    }
}

/// The other end of a pair, and which end opens the connections (`split.dial`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// This end opens them.
    Dialled {
        /// The addresses of the other end, at least one, without duplicates. Only a remote may have several: they are
        /// its grounds, in the order in which it uses them. A certificate must be for exactly one of these hosts.
        at: Vec<HostPort>,
    },
    /// The other end opens them.
    Dials {
        /// The socket on which this end listens.
        listen: SocketAddr,
        /// The accepted names, at least one. The certificate of the other end must have one of them.
        names: Vec<PeerName>,
        /// The files from which some of the names come. A change of one is a change of the configuration.
        files: Vec<PathBuf>,
    },
}

impl Peer {
    /// Returns the socket on which this end listens. None if this end dials.
    pub fn listen(&self) -> Option<SocketAddr> {
        match self {
            Self::Dialled { .. } => None,
            Self::Dials { listen, .. } => Some(*listen),
        }
    }

    /// Returns the addresses that this end dials. None are left if the other end dials.
    pub fn dialled(&self) -> &[HostPort] {
        match self {
            Self::Dialled { at } => at,
            Self::Dials { .. } => &[],
        }
    }

    /// Returns true if the other end opens the connections.
    pub fn dials(&self) -> bool {
        matches!(self, Self::Dials { .. })
    }
}

/// The protocol of the pipe. Clients' bytes use TCP connections in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipeTransport {
    /// HTTP/2 over TCP.
    H2,
    /// HTTP/3 over QUIC: a lost packet delays only the requests to which it belongs.
    H3,
}

/// The behaviour of a remote while the ground does not respond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenDown {
    /// Clients get an error.
    Error,
    /// The remote connects to origins itself, over any route of its host.
    Direct,
}

/// The settings of the end on the wired side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ground {
    /// The remotes or the one remote, and which end dials.
    pub remote: Peer,
    /// True if headers are compressed before they cross the link, provided that the remote compresses too.
    pub pack_headers: bool,
    /// The protocols of remotes: HTTP/2 always, and HTTP/3 if configured.
    pub transport: PipeTransport,
    /// The certificate of this end, and the authority of the other end's.
    pub identity: Identity,
}

/// A certificate for mutual TLS, and the authority of the other end's. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// PEM certificate chain.
    pub cert: PathBuf,
    /// PEM private key.
    pub key: PathBuf,
    /// PEM certificates of the authorities that sign for this pair only.
    pub ca: PathBuf,
}

/// The treatment of UDP to port 443 from clients of a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Udp443 {
    /// Routed as usual: QUIC bypasses the pair.
    Pass,
    /// Refused with ICMP, so that browsers use TCP, and with it the pair, at once.
    Refuse,
}

/// The slow link, as the operator describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The round-trip time without queueing.
    pub rtt: Duration,
    /// The rate towards the clients.
    pub down: Rate,
    /// The rate from the clients.
    pub up: Rate,
    /// The price of bytes.
    pub price: Price,
}

impl Link {
    /// The bytes in a full queue. Modems and cells that are slow enough to matter have less ("WWW over GPRS", 2002).
    const QUEUE: Bytes = Bytes(64 << 10);

    /// Returns the time that a packet spends in the full queue of the slower direction. The other end of a busy link may
    /// need this time to respond.
    #[must_use]
    pub fn queueing_delay(&self) -> Duration {
        self.down.min(self.up).time_for(Self::QUEUE.0)
    }
}

/// The price of the link's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Price {
    /// Bytes cost only time.
    Free,
    /// The operator pays for each byte, so bytes count more than processor time.
    Metered,
}

/// The addresses and names of the proxy for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// The addresses, at least one, without duplicates. They come first in DNS responses, and are the http targets of
    /// moved URLs.
    pub addresses: Vec<IpAddr>,
    /// The proxy's own https names or addresses. A certificate in [`Settings::terminate`] covers each, or is awaited
    /// ([`Acme::awaited`]).
    pub secure_names: Vec<Host>,
    /// Addresses of the other boxes that hold [`Self::addresses`], without duplicates, on networks that both are part of.
    /// They continue connections that began there, when clients move here.
    pub siblings: Vec<IpAddr>,
}

/// The sockets that this box binds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Intercepted http traffic and that to the proxy's addresses; at a ground, the pipe. None if the ground dials.
    pub http: Option<Sockets>,
    /// TLS: ends here for the proxy's own names and terminated names, and is passed through by SNI for all others.
    /// None: `off`.
    pub tls: Option<Sockets>,
    /// The steering DNS, over UDP and TCP. None: `off`.
    pub dns: Option<Sockets>,
    /// Envoy's admin interface, always on a loopback address.
    pub admin: SocketAddr,
    /// Prometheus metrics of CoreDNS. None: `off`.
    pub metrics: Option<SocketAddr>,
    /// The status page. None: `off`.
    pub status: Option<StatusListen>,
    /// The health endpoint for load balancers. None: `off`.
    pub health: Option<SocketAddr>,
    /// Prometheus metrics of the image program. None: `off`.
    pub image_metrics: Option<SocketAddr>,
    /// The way in which packets for other addresses reach this box.
    pub intercept: Intercept,
}

/// The socket of the status page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusListen {
    /// The socket.
    pub socket: SocketAddr,
    /// False for the default socket. If that one is in use, a run starts without the page; without a socket of the
    /// operator's choice it does not start.
    pub required: bool,
}

impl Listen {
    /// Returns the socket of the status page, if a run does not start without it.
    pub fn required_status(&self) -> Option<SocketAddr> {
        self.status.filter(|status| status.required).map(|status| status.socket)
    }

    /// Returns true if clients' packets are intercepted over IPv4 alone, so that their IPv6 traffic bypasses this box.
    /// A box on loopback has no clients.
    pub fn ipv6_bypasses(&self) -> bool {
        let ipv4_alone = |http: &Sockets| !http.serves(Family::Ipv6) && !http.is_loopback();
        self.intercept != Intercept::None && self.http.as_ref().is_some_and(ipv4_alone)
    }

    /// Returns true if a listener of clients has an address of the family.
    pub fn serves(&self, family: Family) -> bool {
        [&self.http, &self.tls, &self.dns].into_iter().flatten().any(|sockets| sockets.serves(family))
    }

    /// Returns the sockets of clients' HTTP and TLS.
    pub fn web(&self) -> impl Iterator<Item = &Sockets> {
        [&self.http, &self.tls].into_iter().flatten()
    }

    /// Returns every socket, with the key of its group.
    pub fn sockets(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> + '_ {
        let clients = [("http", &self.http), ("tls", &self.tls), ("dns", &self.dns)];
        let clients = clients.into_iter().filter_map(|(key, sockets)| sockets.as_ref().map(|sockets| (key, sockets)));
        let status = self.status.map(|status| status.socket);
        let own = [
            ("admin", Some(self.admin)),
            ("metrics", self.metrics),
            ("status", status),
            ("health", self.health),
            ("image_metrics", self.image_metrics),
        ];
        let own = own.into_iter().filter_map(|(key, socket)| socket.map(|socket| (key, socket)));
        clients.flat_map(|(key, sockets)| sockets.iter().map(move |socket| (key, socket))).chain(own)
    }

    /// Returns the sockets that an HTTP request could reach, with the key of each.
    pub fn http_sockets(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> + '_ {
        self.sockets().filter(|(key, _)| *key != "dns")
    }

    /// Returns the listeners as a machine without IPv6 can bind them: without `[::]` beside another address.
    #[must_use]
    pub fn without_ipv6_wildcards(&self) -> Self {
        let left = |sockets: &Option<Sockets>| sockets.as_ref().map(Sockets::without_ipv6_wildcard);
        Self { http: left(&self.http), tls: left(&self.tls), dns: left(&self.dns), ..self.clone() }
    }
}

/// The way in which client packets for other addresses reach the listeners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intercept {
    /// By an nft `redirect` rule. Envoy reads the original destination from conntrack.
    Redirect,
    /// By an nft `tproxy` rule. The listeners are transparent sockets (`CAP_NET_ADMIN`).
    Tproxy,
    /// Not at all: clients come because DNS steers them.
    None,
}

/// The times of an orderly end (SIGTERM).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainTimes {
    /// The time in which it serves on, so that balancers notice.
    pub wait: Duration,
    /// The longest time for requests under way, after the wait.
    pub time: Duration,
}

/// The hosts that this box may reach on the wired side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// Resolvers for the names of origins, at least one. Never this box's own DNS.
    pub resolvers: Vec<SocketAddr>,
    /// Ports that clients may reach through the proxy, at least one.
    pub ports: BTreeSet<u16>,
    /// Private, loopback, link-local or multicast ranges that are reachable nevertheless.
    pub allow_private: Vec<IpNet>,
    /// Ranges that are never reachable, even if another key allows them. An example is this box's public address behind
    /// a NAT.
    pub deny: Vec<IpNet>,
    /// Origins with a fixed address and port, which replace DNS and the URL's port.
    pub map: BTreeMap<HostName, SocketAddr>,
}

/// The URLs that move, and their target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// The URLs that may move.
    pub level: Level,
    /// The target in the file. The chosen one is [`crate::derive::Derived::target`].
    pub target: TargetWish,
    /// Names that are never rewritten, each with everything below it.
    pub exclude: Vec<HostName>,
}

/// The extent of the changes to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Nothing.
    Off,
    /// URLs that can move without a change in the page's behaviour.
    Safe,
    /// The same, and objects of the page's own host.
    Full,
}

impl Level {
    /// Returns the word in the file and in the filter's configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Safe => "safe",
            Self::Full => "full",
        }
    }
}

/// The target of moved URLs that the operator wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetWish {
    /// The kind with a gain by the link model. No URL moves if moving would slow a page.
    Auto,
    /// The secure names.
    Https,
    /// The proxy addresses.
    Http,
}

/// DNS steering.
#[derive(Debug, Clone, PartialEq)]
pub struct Dns {
    /// Allowlist files with absolute paths. Each was readable and without a bad line when checked.
    pub domains: Vec<PathBuf>,
    /// Names in the configuration file that are never steered.
    pub except_names: Vec<NamePattern>,
    /// Files of names that are never steered, with absolute paths and checked like `domains`.
    pub except_files: Vec<PathBuf>,
    /// True if any name whose first label is `www` is steered too.
    pub www: bool,
    /// The treatment of the origin's addresses.
    pub mode: DnsMode,
    /// TTL of steered responses.
    pub ttl: Ttl,
    /// The response to AAAA queries if the proxy has no IPv6 address.
    pub aaaa: AaaaPolicy,
    /// The response to HTTPS queries (type 65).
    pub https: HttpsPolicy,
    /// The treatment of responses that a client may validate.
    pub dnssec: DnssecPolicy,
    /// True if `use-application-dns.net` gets a response that keeps browsers on this server.
    pub canary: bool,
    /// The interval of checks for changed lists. Zero means never.
    pub reload: Duration,
    /// True if steering stops while the proxy does not respond.
    pub health: bool,
    /// Clients that always get the truth.
    pub bypass: Vec<IpNet>,
}

/// The treatment of the origin's addresses in a steered response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsMode {
    /// The proxy first, then at most this many of the origin's.
    Prepend {
        /// The number of origin addresses.
        max_origin: u8,
    },
    /// Only the proxy.
    Replace,
}

/// Bounds of the TTL of a steered response. Within them it is the origin's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ttl {
    /// The lower bound.
    pub min: Duration,
    /// The upper bound.
    pub max: Duration,
}

/// The response to an AAAA query for a steered name if the proxy has no IPv6 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AaaaPolicy {
    /// No data, with an SOA.
    Nodata,
    /// The truth. Clients with IPv6 bypass the proxy.
    Pass,
}

/// The treatment of HTTPS records of a steered name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpsPolicy {
    /// No data, with an SOA.
    Nodata,
    /// The record without addresses, ECH and HTTP/3.
    Strip,
    /// The truth.
    Pass,
}

/// The treatment of signed responses to a client that validates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnssecPolicy {
    /// Left unchanged.
    Skip,
    /// Rewritten, so that validation at clients fails.
    Break,
}

/// The cache of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cache {
    /// No cache.
    Off,
    /// Envoy's own cache on disk.
    Disk {
        /// The folder, absolute.
        dir: PathBuf,
        /// The size.
        size: Bytes,
        /// The condition on which a URL is admitted.
        admit: Admit,
        /// Request fields that change no response. They keep no request from the cache.
        plain_fields: Vec<PlainField>,
    },
    /// Existing caching proxies replace the origin, at least one and each once. Each URL has its own among them. They
    /// have addresses, because Envoy connects to them for every object.
    Parents(Vec<SocketAddr>),
}

/// Compression of responses to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compress {
    /// The quality of brotli, 0-11.
    pub brotli: CompressionLevel,
    /// The level of gzip, 1-9.
    pub gzip: CompressionLevel,
}

/// The effort of a compressor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionLevel {
    /// Responses do not get this content encoding.
    Off,
    /// The level is derived from the link.
    Auto,
    /// The level in the file.
    Set(u8),
}

/// Prefetching, bundling and inlining of a page's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// True if its moved objects are prefetched into the cache while the page passes.
    pub prefetch: bool,
    /// True if its objects are sent to the remote of a pair behind the page.
    pub bundle: bool,
    /// The inlining of small objects.
    pub inline: Inline,
    /// The way of pages over a pair's link, as differences from other pages of their sites.
    pub delta: Delta,
}

/// The cases in which pages cross a pair's link as differences from other pages of their sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta {
    /// If the link model expects a gain.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// The cases in which small objects are inlined into pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inline {
    /// If the link model expects a gain.
    Auto,
    /// Always, within the budget of the link.
    On,
    /// Never.
    Off,
}

/// Smaller variants of images (`page.images`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    /// The cases in which clients get variants.
    pub wish: ImagesWish,
    /// The quality of variants of JPEG images, 1 to 100.
    pub quality: u8,
    /// The quality of variants of PNG images. None: lossless.
    pub png_quality: Option<u8>,
    /// Smaller images are left.
    pub min: Bytes,
    /// Larger images are left.
    pub max: Bytes,
    /// Hosts whose images are left, each with everything below it.
    pub exclude: Vec<HostName>,
}

/// The cases in which clients get smaller variants of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImagesWish {
    /// If the link model expects a gain.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Bounds on the cost of variants of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLimits {
    /// The number of images that are recoded at a time.
    pub workers: u32,
    /// The address space of the process that recodes one image.
    pub memory: Bytes,
    /// The pixels of the largest image that is recoded.
    pub pixels: u32,
    /// The longest time for one image.
    pub time: Duration,
}

/// A certificate of the operator, and the names for which it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Termination {
    /// The names, or addresses of the proxy itself, at least one. A name belongs to only one entry.
    pub names: Vec<Host>,
    /// PEM certificate chain, an absolute path.
    pub cert: PathBuf,
    /// PEM private key, an absolute path.
    pub key: PathBuf,
}

/// The treatment of ACME's HTTP-01 challenges for [`Proxy::secure_names`] (RFC 8555 section 8.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acme {
    /// The program or folder with the responses.
    pub responses: ChallengeResponses,
    /// The entries of `tls.terminate` whose certificate or key does not exist yet, by their index in the file. Until both
    /// exist, TLS does not end here for their names, and no URL moves to them.
    pub awaited: BTreeMap<usize, Termination>,
    /// The socket that serves challenges and nothing else. `longhaul host` leads port 80 of other interfaces than the
    /// clients' to it. None: `off`.
    pub listen: Option<SocketAddr>,
}

impl Acme {
    /// Returns true if the responses lie in a folder.
    pub fn has_webroot(&self) -> bool {
        matches!(self.responses, ChallengeResponses::Webroot(_))
    }
}

/// The source of the responses to challenges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChallengeResponses {
    /// The folder, absolute, in which an ACME client writes `.well-known/acme-challenge/TOKEN`.
    Webroot(PathBuf),
    /// The address of an ACME client's own server.
    Forward(SocketAddr),
}

/// Bounds on the cost of one client or page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The memory that the rewriter may use for one page.
    pub page_memory: Bytes,
    /// The number of client connections at one time.
    pub connections: u32,
    /// The size of the header block of one request.
    pub header: Bytes,
    /// The number of URLs, at about a kilobyte each, that Envoy's cache may remember before another Envoy takes over.
    pub urls: u32,
    /// The number of clients whose headers each worker of a pair remembers.
    pub clients: u32,
    /// The number of new names that one client may request at once, and each minute.
    pub new_names_per_client: u32,
    /// The cost of variants of images.
    pub images: ImageLimits,
}

impl Settings {
    /// Returns the authorities to which an http object can move without TLS: `ADDRESS`, with the port if it is not 80.
    /// Clients reach each over one of `families`.
    pub fn http_authorities(&self, families: &[Family]) -> Vec<String> {
        let Some(http) = &self.listen.http else { return Vec::new() };
        let reached = self.proxy.addresses.iter().filter(|address| families.contains(&Family::of(**address)));
        reached.map(|address| Host::Address(*address).authority(http.port(), 80)).collect()
    }

    /// Returns the proxy's own https authorities that have a certificate: names or addresses, with the port if it is not
    /// 443. Clients reach each over one of `families`. A name leads to every address of the proxy.
    pub fn https_authorities(&self, families: &[Family]) -> Vec<String> {
        let Some(tls) = &self.listen.tls else { return Vec::new() };
        let served = |name: &&Host| self.terminate.iter().any(|entry| entry.names.contains(name));
        let named = self.proxy.addresses.iter().any(|address| families.contains(&Family::of(*address)));
        let reached = |host: &&Host| match host {
            Host::Name(_) => named,
            Host::Address(address) => families.contains(&Family::of(*address)),
        };
        let own = self.proxy.secure_names.iter().filter(served).filter(reached);
        own.map(|name| name.authority(tls.port(), 443)).collect()
    }

    /// Returns true if a filter sends requests of its own, through the hop `fetch`.
    pub fn fetches(&self) -> bool {
        let sees_pages = match self.role {
            Role::Edge | Role::Ground(_) => true,
            Role::Remote(_) => false,
        };
        let bundles = self.page.bundle && matches!(self.role, Role::Ground(_));
        sees_pages && (self.prefetches() || bundles)
    }

    /// Returns true if a page's moved objects are prefetched: if URLs move, and if this box has a disk cache. Nothing
    /// else would keep the objects.
    pub fn prefetches(&self) -> bool {
        self.page.prefetch && self.rewrite.level != Level::Off && matches!(self.cache, Cache::Disk { .. })
    }

    /// Returns true if small objects are inlined. They must have been prefetched, and no remote of a pair may be there
    /// to hold them.
    pub fn inlines(&self) -> bool {
        let pays = match self.page.inline {
            Inline::On => true,
            Inline::Off => false,
            Inline::Auto => LinkModel::of(&self.link).class == LinkClass::LongRoundTrips,
        };
        pays && self.prefetches() && matches!(self.role, Role::Edge)
    }

    /// Returns true if pages cross the link of a pair as differences from other pages of their sites.
    pub fn sends_deltas(&self) -> bool {
        let pays = match self.page.delta {
            Delta::On => true,
            Delta::Off => false,
            Delta::Auto => DeltaGain::of(&self.link).pays,
        };
        // A first page is decompressed to be kept, and must be compressed again.
        let compresses = [self.compress.brotli, self.compress.gzip].iter().any(|level| *level != CompressionLevel::Off);
        pays && compresses && self.role.name() != RoleName::Edge
    }

    /// Returns every authority of the proxy itself, secure names first.
    pub fn own_authorities(&self) -> Vec<String> {
        let mut own = self.https_authorities(&Family::BOTH);
        own.extend(self.http_authorities(&Family::BOTH));
        own
    }
}
